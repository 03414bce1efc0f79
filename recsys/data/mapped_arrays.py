"""Arrays as plain files that are mapped, not read: memory holds the pages that are in use."""

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from recsys.foundations import FormatError, map_npy

ROWS_AT_ONCE = 2**20


def row_blocks(num_rows: int, size: int = ROWS_AT_ONCE) -> Iterator[slice]:
    """Give consecutive slices of at most `size` rows that make up `num_rows`."""
    for start in range(0, num_rows, size):
        yield slice(start, min(start + size, num_rows))


def write_array(path: Path, values: NDArray[Any], dtype: DTypeLike) -> None:
    """Write an array as `.npy`, block by block: `values` may be larger than memory.

    Args:
        path: The file.
        values: [N, ...]; where another type is to be written, one whose values that type holds.
        dtype: What is written.
    """
    kind = np.dtype(dtype)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": kind.str, "fortran_order": False, "shape": values.shape}
        )
        for rows in row_blocks(len(values)):
            file.write(np.ascontiguousarray(values[rows], kind).data)
            release_pages(values)


def release_pages(values: NDArray[Any]) -> None:
    """Take the pages of an array that is mapped to be read out of the process's memory.

    They are mapped again where they are needed. An array that is not mapped stays as it is.
    """
    base: Any = values
    while base is not None and not isinstance(base, mmap.mmap):
        base = getattr(base, "base", None)
    if base is not None and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def map_array(path: Path, dtype: DTypeLike, *shape: int | None) -> NDArray[Any]:
    """Map a file that `write_array` wrote; the array can be read alone.

    Args:
        path: The file.
        dtype: What it must hold.
        shape: What its shape must be; None: any length.

    Raises:
        FormatError: It holds something else, or is no whole file.
    """
    mapped = map_npy(path)
    wanted = (np.dtype(dtype), len(shape))
    if (mapped.dtype, mapped.ndim) != wanted:
        raise FormatError(f"{path} is damaged: it holds no {len(shape)}-d array of {wanted[0]}.")
    for found, needed in zip(mapped.shape, shape, strict=True):
        if needed is not None and found != needed:
            raise FormatError(f"{path} is damaged: its shape is {mapped.shape}, not {shape}.")
    return mapped.view(np.ndarray)  # still mapped; without the cost that a memmap adds to each use
