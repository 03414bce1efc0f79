"""Ids that a caller gives, as text."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, UnknownIdError

Ids: TypeAlias = Sequence[str] | pa.Array | pa.ChunkedArray


def as_ids(ids: Any) -> pa.LargeStringArray:
    """Give ids as text: texts, and whole numbers digit for digit.

    Raises:
        ArgumentError: They are neither, or one is null.
    """
    if isinstance(ids, str):
        raise ArgumentError(f"Ids must be a list of ids, got the text {ids!r}.")
    try:
        array = ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(ids)
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if pa.types.is_floating(array.type) or pa.types.is_boolean(array.type):
            raise ArgumentError(f"Ids must be texts or whole numbers, got {array.type}.")
        array = array.cast(pa.large_string())
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise ArgumentError(f"Ids must be texts or whole numbers: {error}.") from error
    if array.null_count:
        raise ArgumentError("Ids must not be null.")
    return array


def refuse_unknown(ids: pa.LargeStringArray, unknown: NDArray[np.bool_]) -> None:
    """Refuse item ids that are marked as unknown.

    Raises:
        UnknownIdError: One is; the message names the first.
    """
    if unknown.any():
        first = ids[int(np.argmax(unknown))].as_py()
        more = f" (and {unknown.sum() - 1} more)" if unknown.sum() > 1 else ""
        raise UnknownIdError(f"There is no item {first!r} with a vector{more}.")
