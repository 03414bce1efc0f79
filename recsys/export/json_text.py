"""Columns as JSON text, one value a row, without a loop over rows.

Dimensions: B rows, E width of vectors.
"""

import json
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.data import is_list
from recsys.export.column_kinds import kind_of, list_parts, lists_of
from recsys.foundations import DataError

_TEXT = pa.large_string()


def json_values(name: str, column: pa.Array) -> pa.LargeStringArray:
    """Write values as JSON.

    Whole numbers and decimals keep their digits, moments are ISO 8601 in UTC (one without a zone
    counts as UTC), a time of the day is text, a duration counts microseconds.

    Args:
        name: Of the column, for the error.
        column: [B], of a type that `kind_of` names.

    Returns:
        [B]; null where JSON has no value: null, NaN and infinity. Inside lists these are left out.

    Raises:
        DataError: A moment lies outside the years 1 to 9999.
    """
    if is_list(column.type):
        return _lists(name, column)
    match kind_of(column.type):
        case "text":
            return _joined('"', _escaped(column.cast(_TEXT)), '"')
        case "float":
            return _floats(column)
        case "moment":
            return _joined('"', _moments(name, column), '"')
        case "time":
            return _joined('"', column.cast(_TEXT), '"')
        case "duration":
            return column.cast(pa.duration("us"), safe=False).cast(pa.int64()).cast(_TEXT)
    return column.cast(_TEXT)


def json_vectors(vectors: NDArray[np.float32]) -> pa.LargeStringArray:
    """Write vectors [B, E] as JSON lists: the shortest digits that give each float32 back."""
    num_rows, width = vectors.shape
    numbers = pa.array(vectors.reshape(-1), pa.float32()).cast(_TEXT)
    offsets = np.arange(num_rows + 1, dtype=np.int32) * width
    return _brackets(pa.ListArray.from_arrays(pa.array(offsets), numbers))


def json_objects(fields: Mapping[str, pa.LargeStringArray]) -> pa.LargeStringArray:
    """Write objects; a field that is null stands in none.

    Args:
        fields: Key -> [B] JSON texts; those of the first are never null.
    """
    members = [
        _joined(json.dumps(key, ensure_ascii=False) + ":", texts, "")
        for key, texts in fields.items()
    ]
    inside = pc.binary_join_element_wise(*members, _scalar(","), null_handling="skip")
    return _joined("{", inside, "}")


def joined_lines(*parts: str | pa.LargeStringArray) -> pa.LargeStringArray:
    """Join texts and columns of texts row by row."""
    columns = [_scalar(part) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*columns, _scalar(""))


def _escaped(text: pa.LargeStringArray) -> pa.LargeStringArray:
    text = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
    if pc.any(pc.match_substring_regex(text, r"[\x00-\x1f]")).as_py():
        for code in range(32):
            text = pc.replace_substring(text, chr(code), f"\\u{code:04x}")
    return text


def _floats(column: pa.Array) -> pa.LargeStringArray:
    text = pc.if_else(pc.is_finite(column), column, None).cast(_TEXT)
    whole = pc.match_substring_regex(text, r"^-?[0-9]+$")  # 2.0 stays a float: no `2`
    return pc.if_else(whole, _joined("", text, ".0"), text)


def _moments(name: str, column: pa.Array) -> pa.LargeStringArray:
    kind = column.type
    unit = kind.unit if pa.types.is_timestamp(kind) else "ms" if pa.types.is_date64(kind) else "s"
    in_utc = column.cast(pa.timestamp(unit))
    if unit != "ns":  # whose range lies inside
        ends = np.array(["0001-01-01", "9999-12-31T23:59:59"], f"datetime64[{unit}]")
        first, last = (int(end) for end in ends.astype(np.int64))
        counts = pc.drop_null(in_utc.cast(pa.int64()))
        beyond = pc.or_(pc.less(counts, first), pc.greater(counts, last))
        if pc.any(beyond).as_py():
            raise DataError(
                f"The item column {name!r} holds a moment that no JSON date is, outside the years "
                f"1 to 9999: {counts.filter(beyond)[0]} {unit} since 1970; leave the column out by "
                "columns=[...]."
            )
    return pc.strftime(in_utc, format="%Y-%m-%dT%H:%M:%SZ").cast(_TEXT)


def _lists(name: str, column: pa.Array) -> pa.LargeStringArray:
    owners, elements = list_parts(column)
    lists = lists_of(owners, json_values(name, elements), len(column))
    return pc.if_else(column.is_valid(), _brackets(lists), None)


def _brackets(lists: pa.ListArray) -> pa.LargeStringArray:
    return _joined("[", pc.binary_join(lists, _scalar(",")), "]")


def _joined(before: str, texts: pa.LargeStringArray, after: str) -> pa.LargeStringArray:
    return pc.binary_join_element_wise(_scalar(before), texts, _scalar(after), _scalar(""))


def _scalar(text: str) -> pa.LargeStringScalar:
    return pa.scalar(text, _TEXT)
