"""Names that engines take: of collections, which are refused, and of fields, which are changed."""

import re
from collections.abc import Callable, Iterable

from recsys.foundations import ArgumentError

_LONGEST = 255  # characters or bytes, in every engine
# Words of Milvus's expressions and its own fields, which name no field.
_MILVUS_WORDS = frozenset(
    f"{before}{word}"
    for before, words in (
        ("", ("and", "or", "not", "in", "like", "exists", "is", "null", "true", "false")),
        ("", ("rowid", "timestamp", "text_match", "phrase_match", "array_length", "random_sample")),
        ("json_contains", ("", "_all", "_any")),
        ("array_contains", ("", "_all", "_any")),
    )
    for word in words
)
_RULES: dict[str, tuple[re.Pattern[str], str]] = {
    "qdrant": (
        re.compile(r"""(?!\.{1,2}\Z)[^<>:"/\\|?*\x00-\x20]+"""),
        'be without blanks and the signs < > : " / \\ | ? *',
    ),
    "milvus": (
        re.compile(r"[A-Za-z_][A-Za-z0-9_]*"),
        "hold letters, digits and underscores, a digit not first",
    ),
    "opensearch": (
        re.compile(r"""(?![-_+])(?!\.{1,2}\Z)[^A-Z<>:"/\\|?*,#\x00-\x20]+"""),
        'hold no capital, no blank and none of < > : " / \\ | ? * , #, and must not begin with '
        "- _ or +",
    ),
}


def check_name(form: str, name: str) -> None:
    """Check the name of a collection or index.

    Args:
        form: Of the export; one that names nothing takes every name.
        name: The name.

    Raises:
        ArgumentError: The engine refuses it.
    """
    if form not in _RULES:
        return
    pattern, words = _RULES[form]
    if pattern.fullmatch(name) is None:
        raise ArgumentError(f"`name` must {words} for form={form}, got {name!r}.")
    if len(name.encode()) > _LONGEST:
        raise ArgumentError(f"`name` must have at most {_LONGEST} bytes for form={form}.")


def parquet_field(name: str) -> str:
    """Give the name of a column in a Parquet file: as it is."""
    return name


def qdrant_field(name: str) -> str:
    """Give a key of a payload: any text, without the quote that would end it in a path."""
    return name.replace('"', "_") or "_"


def milvus_field(name: str) -> str:
    """Give a field's name: ASCII letters, digits and underscores."""
    field = re.sub(r"[^A-Za-z0-9_]", "_", name)[: _LONGEST - 8]
    if not field or field[0].isdigit() or field.lower() in _MILVUS_WORDS:
        return f"_{field}"
    return field


def opensearch_field(name: str) -> str:
    """Give a field's name: no dot, which would nest it, and no underscore in front."""
    field = re.sub(r"[.*\x00-\x1f]", "_", name).strip()
    return f"column{field}" if field.startswith("_") else field or "column"


def field_names(
    columns: Iterable[str], rename: Callable[[str], str], taken: Iterable[str]
) -> dict[str, str]:
    """Name a field for each column, all different.

    Args:
        columns: Names in the item table.
        rename: What an engine makes of one.
        taken: Names of other fields; a column of such a name gets a number behind it.

    Returns:
        Column -> field, in order.
    """
    used, fields = set(taken), {}
    for column in columns:
        field = first = rename(column)
        number = 2
        while field in used:
            field, number = f"{first}_{number}", number + 1
        used.add(field)
        fields[column] = field
    return fields
