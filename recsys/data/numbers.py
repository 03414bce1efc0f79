"""Numbers out of a column that holds them as numbers or as text."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

NUMBER = r"^-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"


def as_numbers(column: pa.ChunkedArray) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Read a column as numbers.

    Args:
        column: [N], numbers, booleans or text.

    Returns:
        [N] float64, NaN where there is no number; and [N] bool, whether a value is there that is
        not a number.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return as_numbers(pc.cast(column, kind.value_type))
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan), np.zeros(len(column), bool)
    if is_text(kind):
        trimmed = pc.utf8_trim_whitespace(column)
        written = pc.match_substring_regex(trimmed, NUMBER)
        numbers = pc.cast(pc.if_else(written, trimmed, None), pa.float64())
        strange = pc.fill_null(pc.invert(written), False)
        return numbers.to_numpy(), strange.to_numpy()
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return pc.cast(column, pa.float64(), safe=False).to_numpy(), np.zeros(len(column), bool)
    if pa.types.is_boolean(kind):
        return as_numbers(pc.cast(column, pa.int8()))
    return np.full(len(column), np.nan), pc.is_valid(column).to_numpy()


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a type is text."""
    types = pa.types
    tests = (types.is_string, types.is_large_string, types.is_string_view)
    return any(test(kind) for test in tests)
