"""What the columns of items hold, in the few kinds that engines tell apart.

Dimensions: M elements of all lists of a column.
"""

import logging
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.data import is_list, is_text

log = logging.getLogger(__name__)
_TESTS = (
    ("text", is_text),
    ("bool", pa.types.is_boolean),
    ("int", pa.types.is_integer),
    ("float", pa.types.is_floating),
    ("decimal", pa.types.is_decimal),
    ("moment", lambda kind: pa.types.is_timestamp(kind) or pa.types.is_date(kind)),
    ("time", pa.types.is_time),
    ("duration", pa.types.is_duration),
)


def value_type(kind: pa.DataType) -> pa.DataType:
    """Give the type of a single value: of the elements, where a column holds lists."""
    return kind.value_type if is_list(kind) else kind


def kind_of(kind: pa.DataType) -> str | None:
    """Name what a column holds, or its lists do.

    Returns:
        "text", "bool", "int", "float", "decimal", "moment" (a date too), "time" (of the day) or
        "duration"; None for bytes and for columns that hold nothing.
    """
    single = value_type(kind)
    return next((name for name, test in _TESTS if test(single)), None)


def writable(types: Mapping[str, pa.DataType], form: str) -> dict[str, pa.DataType]:
    """Keep the columns that an engine can hold; the others are named in the log."""
    kept = {name: kind for name, kind in types.items() if kind_of(kind) is not None}
    for name in types.keys() - kept.keys():
        log.info("column %r of type %s is left out of %s", name, types[name], form)
    return kept


def list_parts(column: pa.ListArray) -> tuple[NDArray[np.int64], pa.Array]:
    """Give the list that each element stands in [M], never falling, and the M elements.

    Null lists have none, whatever lies behind them in memory.
    """
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    return np.repeat(np.arange(len(column)), lengths), pc.list_flatten(column)


def lists_of(owners: NDArray[np.int64], elements: pa.Array, num_lists: int) -> pa.ListArray:
    """Put elements [M] into the lists of their owners [M], but for nulls, which go."""
    there = elements.is_valid().to_numpy(zero_copy_only=False)
    lengths = np.bincount(owners[there], minlength=num_lists)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), elements.drop_null())
