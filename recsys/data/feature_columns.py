"""Columns as read, brought to one of three forms: texts, numbers, lists."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.foundations import DataError


def whole_column(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Give a column as one array, dictionaries decoded."""
    if isinstance(column, pa.ChunkedArray):
        empty = pa.array([], column.type)
        column = pa.concat_arrays(column.chunks) if column.num_chunks else empty
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def is_list(kind: pa.DataType) -> bool:
    """Tell whether a type is a list of any form."""
    checks = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(check(kind) for check in checks)


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a type is text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def as_text(name: str, column: pa.Array) -> pa.LargeStringArray:
    """Give values as text; whole numbers are their digits, whichever type holds them.

    A value's text does not depend on the other values, so that a column may come in blocks.

    Raises:
        DataError: The column holds lists, structures or bytes.
    """
    kind = column.type
    if pa.types.is_null(kind) or is_text(kind):
        return column.cast(pa.large_string())
    if pa.types.is_nested(kind) or _is_bytes(kind):
        raise DataError(f"The feature column {name!r} must hold one value a row, got {kind}.")
    if pa.types.is_float16(kind):  # which Arrow cannot round
        column = column.cast(pa.float32())
    text = column.cast(pa.large_string())
    if pa.types.is_floating(kind):
        fits = pc.less(pc.abs(column), 2.0**63)  # false for NaN
        whole = pc.and_(fits, pc.equal(pc.trunc(column), column))
        digits = pc.if_else(whole, column, None).cast(pa.int64()).cast(pa.large_string())
        text = pc.if_else(whole, digits, text)
    return text


def _is_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    tests = (
        types.is_binary,
        types.is_large_binary,
        types.is_fixed_size_binary,
        types.is_binary_view,
    )
    return any(test(kind) for test in tests)


def as_numbers(name: str, column: pa.Array) -> NDArray[np.float64]:
    """Give values as float64, NaN where null or an empty text; times count microseconds.

    Raises:
        DataError: A value is no number, or infinite.
    """
    kind = column.type
    if pa.types.is_temporal(kind):
        column = _microseconds(column)
    if pa.types.is_nested(kind) or _is_bytes(kind):
        raise DataError(f"The feature column {name!r} must hold numbers, got {kind}.")
    if is_text(kind):  # all that a text file can hold
        column = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
        column = pc.if_else(pc.equal(column, ""), None, column)
    try:
        numbers = column.cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"The feature column {name!r} must hold numbers: {error}.") from error
    values = np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64)
    beyond = np.isinf(values)
    if beyond.any():
        value = column[int(np.argmax(beyond))].as_py()
        raise DataError(f"The feature column {name!r} must hold finite numbers, got {value!r}.")
    return values


def _microseconds(column: pa.Array) -> pa.Array:
    """Give moments since 1970, times of the day since midnight, and durations as int64."""
    if pa.types.is_time(column.type):
        unit = pa.time64("us")
    elif pa.types.is_duration(column.type):
        unit = pa.duration("us")
    else:
        unit = pa.timestamp("us")
    return column.cast(unit, safe=False).cast(pa.int64())


def as_lists(
    name: str, column: pa.Array, separator: str | None
) -> tuple[NDArray[np.int64], pa.Array]:
    """Give the values of all lists and the row of each; nulls and empty texts are left out.

    Args:
        name: Of the column, for the error.
        column: Lists; or text, whose values stand between separators (without one: one value).
        separator: Is not part of the values, nor are blanks around them.

    Returns:
        The rows [M], never falling, and the M values.

    Raises:
        DataError: The column holds neither lists nor text.
    """
    if is_text(column.type):
        text = column.cast(pa.large_string())
        pattern = "\x00" if separator is None else separator
        column = pc.split_pattern(text, pattern)
    elif not is_list(column.type):
        raise DataError(
            f"The feature column {name!r} must hold lists, or text with a separator, "
            f"got {column.type}."
        )
    owners, values = pc.list_parent_indices(column), pc.list_flatten(column)
    if is_text(values.type):
        values = pc.utf8_trim_whitespace(values)
        values = pc.if_else(pc.equal(values, ""), None, values)
    kept = pc.is_valid(values)
    return np.asarray(owners.filter(kept).to_numpy(), np.int64), values.filter(kept)
