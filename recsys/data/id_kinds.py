"""In which form the ids of a log are compared: as numbers where all files hold numbers."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from recsys.data.ids import floats_as_integers, ids_as_text

SIGNED, UNSIGNED, TEXT = "signed", "unsigned", "text"


def id_kind(types: Iterable[pa.DataType]) -> str:
    """Choose the form in which ids of these types are the same where their texts are.

    Returns:
        "signed" or "unsigned": whole numbers of 64 bits, which are several times faster to tell
        apart than text and have one text each; else "text".
    """
    kinds = {_kind(kind) for kind in types} - {None}
    [kind] = kinds if len(kinds) == 1 else {TEXT}
    return str(kind)


def common_kind(kinds: Iterable[str]) -> str:
    """Give the kind in which ids of several logs can be compared."""
    found = set(kinds)
    return found.pop() if len(found) == 1 else TEXT


def read_ids(
    column: pa.ChunkedArray, kind: str, *, file: str, name: str, first_row: int = 0
) -> pa.ChunkedArray:
    """Give a column of ids as large_string, or as int64 whose bits are the number's.

    Args:
        column: [N], of a type that `id_kind` was told of.
        kind: As `id_kind` gave it.
        file: The file, for messages.
        name: The column's name, for messages.
        first_row: The row of the file, from 0, that the column begins with.

    Raises:
        DataError: A value or the type cannot be an id.
    """
    if kind == TEXT:
        return ids_as_text(column, file=file, name=name, first_row=first_row)
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if pa.types.is_floating(column.type):
        return floats_as_integers(column, file=file, name=name, first_row=first_row)
    if kind == UNSIGNED and not pa.types.is_null(column.type):
        return pa.chunked_array([chunk.view(pa.int64()) for chunk in column.chunks], pa.int64())
    return pc.cast(column, pa.int64())


def _kind(kind: pa.DataType) -> str | None:
    if pa.types.is_dictionary(kind):
        return _kind(kind.value_type)
    if pa.types.is_null(kind):
        return None
    if kind == pa.uint64():
        return UNSIGNED
    return SIGNED if pa.types.is_integer(kind) or pa.types.is_floating(kind) else TEXT
