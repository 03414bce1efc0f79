"""Ids as text, digit for digit, whatever type a file stores them in."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recsys.foundations import DataError


def ids_as_text(
    column: pa.ChunkedArray, *, file: str, name: str, first_row: int = 0
) -> pa.ChunkedArray:
    """Give a column of ids as text.

    Text stays as it is: nothing is trimmed, folded or normalised. An integer becomes its decimal
    digits. A float column is what a table of integers turns into where some are missing, so a
    whole number below 2**53 becomes its digits and NaN is null; any other float is no id.

    Args:
        column: [N], of any type.
        file: The file, for the message.
        name: The column's name, for the message.
        first_row: The row of the file, from 0, that the column begins with.

    Returns:
        [N], large_string; null where there is no id.

    Raises:
        DataError: A value or the type cannot be an id; the message names file, column and value.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = pc.cast(column, kind.value_type)
        return ids_as_text(column, file=file, name=name, first_row=first_row)
    if pa.types.is_floating(kind):
        whole = floats_as_integers(column, file=file, name=name, first_row=first_row)
        return pc.cast(whole, pa.large_string())
    if pa.types.is_decimal(kind) and kind.scale > 0:
        return _decimals_as_text(column, file=file, name=name)
    if _is_text_like(kind):
        try:
            return pc.cast(column, pa.large_string())
        except pa.ArrowInvalid as error:
            raise DataError(f"{file}: the column {name!r} holds bytes that are no text.") from error
    raise DataError(f"{file}: the column {name!r} is of type {kind}, which cannot be an id.")


def _is_text_like(kind: pa.DataType) -> bool:
    tests = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_integer,
        pa.types.is_decimal,
        pa.types.is_null,
    )
    return any(test(kind) for test in tests)


def floats_as_integers(
    column: pa.ChunkedArray, *, file: str, name: str, first_row: int = 0
) -> pa.ChunkedArray:
    """Give whole floats as int64; the arguments are those of `ids_as_text`, NaN becomes null.

    Raises:
        DataError: A value is not a whole number, or so large that the type skips integers.
    """
    # Beyond this a float holds only some of the integers: another id may have become this one.
    limit = {16: 2.0**11, 32: 2.0**24}.get(column.type.bit_width, 2.0**53)
    values = pc.cast(column, pa.float64()).to_numpy()
    missing = np.isnan(values)
    fits = (np.abs(values) < limit) & (np.floor(values) == values)
    wrong = np.flatnonzero(~fits & ~missing)
    if len(wrong):
        raise DataError(
            f"{file}, row {first_row + wrong[0] + 1}: the column {name!r} is of type "
            f"{column.type} and holds {values[wrong[0]]!s}, not an exact whole number; store ids "
            "as integers or text."
        )
    whole = np.where(missing, 0.0, values).astype(np.int64)
    return pa.chunked_array([pa.array(whole, mask=missing)])


def _decimals_as_text(column: pa.ChunkedArray, *, file: str, name: str) -> pa.ChunkedArray:
    try:
        whole = pc.cast(column, pa.decimal128(38, 0))
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{file}: the column {name!r} is of type {column.type} and holds a value that is not "
            "a whole number; store ids as text or integers."
        ) from error
    return pc.cast(whole, pa.large_string())
