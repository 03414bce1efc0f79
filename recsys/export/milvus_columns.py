"""Columns as Milvus has them: fields of its schema, and values that its import takes.

Dimensions: B items of a block.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recsys.data import is_list, is_text
from recsys.export.column_kinds import kind_of, list_parts, lists_of, value_type
from recsys.foundations import DataError

LONGEST_TEXT = 65_535  # bytes
LONGEST_LIST = 4096
_INTEGERS = {"int8": "INT8", "int16": "INT16", "int32": "INT32", "uint8": "INT16"}
_INTEGERS |= {"uint16": "INT32"}
_OTHERS = {"text": "VARCHAR", "bool": "BOOL", "decimal": "DOUBLE"}
ARROW_TYPES: Mapping[str, pa.DataType] = {
    "BOOL": pa.bool_(),
    "INT8": pa.int8(),
    "INT16": pa.int16(),
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
}


def milvus_type(kind: pa.DataType) -> str:
    """Name the type of a column's values, or of the elements of its lists.

    Times are INT64: microseconds since 1970 UTC, since midnight, or of a duration.
    """
    single = value_type(kind)
    match kind_of(kind):
        case "int":
            return _INTEGERS.get(str(single), "INT64")
        case "float":
            return "DOUBLE" if single == pa.float64() else "FLOAT"
        case other:
            return _OTHERS.get(str(other), "INT64")


class Sizes:
    """The longest text and list of each field of what was written so far."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}
        self._lists: dict[str, int] = {}

    def note(self, field: str, values: pa.Array) -> None:
        """Look at some values of a field, as `milvus_values` gives them."""
        if is_list(values.type):
            lengths = pc.list_value_length(values)
            self._lists[field] = max(pc.max(lengths).as_py() or 0, self._lists.get(field, 0))
            values = pc.list_flatten(values)
        if is_text(values.type):
            lengths = pc.binary_length(values)
            self._texts[field] = max(pc.max(lengths).as_py() or 0, self._texts.get(field, 0))

    def max_length(self, field: str) -> int:
        """Give room for texts of twice the length, in bytes.

        Not the most that Milvus takes: by this number an import plans how many rows it reads.
        """
        return _room(self._texts.get(field, 0), least=64, most=LONGEST_TEXT)

    def max_capacity(self, field: str) -> int:
        """Give room for lists of twice the length."""
        return _room(self._lists.get(field, 0), least=8, most=LONGEST_LIST)


def _room(longest: int, *, least: int, most: int) -> int:
    """Round twice a length up to a power of two, within bounds."""
    return min(max(1 << (2 * longest - 1).bit_length(), least), most) if longest else least


def milvus_field(name: str, kind: pa.DataType, sizes: Sizes) -> dict[str, Any]:
    """Give the arguments of `schema.add_field` for a column, types by name."""
    single = milvus_type(kind)
    field: dict[str, Any] = {"field_name": name, "datatype": single, "nullable": True}
    if is_list(kind):
        field |= {"datatype": "ARRAY", "element_type": single}
        field["max_capacity"] = sizes.max_capacity(name)
    if single == "VARCHAR":
        field["max_length"] = sizes.max_length(name)
    return field


def milvus_values(name: str, column: pa.Array, ids: pa.LargeStringArray) -> pa.Array:
    """Give the values of a column in the type of its field.

    NaN and infinity are null; inside lists they and nulls are left out.

    Args:
        name: Of the column, for the error.
        column: [B].
        ids: [B], of the items, for the error.

    Raises:
        DataError: A text or list is too long, or an integer beyond 64 bits with a sign.
    """
    single = ARROW_TYPES[milvus_type(column.type)]
    if not is_list(column.type):
        return _values(name, column, single, ids)
    lengths = pc.list_value_length(column)
    longest = pc.max(lengths).as_py() or 0
    if longest > LONGEST_LIST:
        raise _refusal(name, ids[pc.index(lengths, longest).as_py()], f"a list of {longest:,}")
    owners, elements = list_parts(column)
    values = _values(name, elements, single, ids.take(pa.array(owners)))
    return pc.if_else(column.is_valid(), lists_of(owners, values, len(column)), None)


def _values(name: str, column: pa.Array, single: pa.DataType, ids: pa.Array) -> pa.Array:
    match kind_of(column.type):
        case "text":
            check_text(name, column, ids)
            return column.cast(single)
        case "float":
            return pc.if_else(pc.is_finite(column), column, None).cast(single)
        case "moment":
            return column.cast(pa.timestamp("us"), safe=False).cast(single)
        case "time":
            return column.cast(pa.time64("us"), safe=False).cast(single)
        case "duration":
            return column.cast(pa.duration("us"), safe=False).cast(single)
    try:
        return column.cast(single)
    except pa.ArrowInvalid:
        largest = pc.max(column).as_py()
        item = ids[pc.index(column, pa.scalar(largest, column.type)).as_py()]
        raise _refusal(name, item, f"{largest}, beyond INT64,") from None


def check_text(name: str, column: pa.Array, ids: pa.Array) -> None:
    """Check that texts [B] fit a VARCHAR.

    Raises:
        DataError: One is too long; the message names the column and the item.
    """
    lengths = pc.binary_length(column)
    longest = pc.max(lengths).as_py() or 0
    if longest > LONGEST_TEXT:
        raise _refusal(
            name, ids[pc.index(lengths, longest).as_py()], f"a text of {longest:,} bytes"
        )


def _refusal(name: str, item: pa.Scalar, what: str) -> DataError:
    return DataError(
        f"The item column {name!r} holds {what} for item {str(item)[:60]!r}, which Milvus does not "
        f"take (texts: {LONGEST_TEXT:,} bytes, lists: {LONGEST_LIST:,} elements): leave the column "
        "out by columns=[...]."
    )
