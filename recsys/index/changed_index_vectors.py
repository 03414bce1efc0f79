"""The vectors of a changed catalogue, without a copy of those that did not change.

Dimensions: N vectors of the main index, C with the added ones, n changed rows, D embedding width.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.index.changes import Changes

_VECTORS_AT_ONCE = 65_536


class ChangedVectors:
    """Vectors [C, D], float32, that are read as an array is and never copied as a whole.

    ``vectors[rows]`` gives a copy, [D] for one row and [n, D] for a slice, an array of rows or a
    mask. `numpy.asarray` makes the whole array.

    Args:
        main: [N, D], float32; kept, not copied (a memory map will do).
        changes: What stands in their place, and beyond them.
    """

    ndim = 2
    dtype = np.dtype(np.float32)

    def __init__(self, main: NDArray[np.float32], changes: Changes) -> None:
        self._main, self._changes = main, changes

    @property
    def shape(self) -> tuple[int, int]:
        """Give (C, D)."""
        return self._changes.num_candidates, int(self._main.shape[1])

    @property
    def size(self) -> int:
        """Give C * D."""
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                return self._range(start, max(start, stop))
            return self._take(np.arange(start, stop, step))
        wanted = np.asarray(rows)
        if wanted.dtype == np.bool_:
            if wanted.shape != (len(self),):
                raise IndexError(f"a mask must have shape [{len(self)}], got {list(wanted.shape)}.")
            wanted = np.flatnonzero(wanted)
        if wanted.size == 0:
            wanted = wanted.astype(np.int64)  # an empty list is one of floats
        if wanted.dtype.kind not in "iu":
            raise IndexError("vectors are read by rows, slices of rows or a mask.")
        taken = self._take(self._from_zero(wanted.astype(np.int64).reshape(-1)))
        return taken.reshape(*wanted.shape, self.shape[1])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("these vectors stand in two places: an array of them is a copy.")
        return self[:].astype(dtype or np.float32, copy=False)

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        for block in self.blocks():
            yield from block

    def blocks(self, size: int = _VECTORS_AT_ONCE) -> Iterator[NDArray[np.float32]]:
        """Give copies of consecutive vectors, [size, D] each; the last one may be shorter."""
        for start in range(0, len(self), size):
            yield self._range(start, min(start + size, len(self)))

    def _from_zero(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count negative rows from the end, as numpy does."""
        if len(rows) and not -len(self) <= rows.min() <= rows.max() < len(self):
            raise IndexError(f"rows must lie below {len(self)}, got {rows.min()} to {rows.max()}.")
        return np.where(rows < 0, rows + len(self), rows)

    def _range(self, start: int, stop: int) -> NDArray[np.float32]:
        given = np.empty((stop - start, self.shape[1]), np.float32)
        old = self._main[start:stop]
        given[: len(old)] = old
        low, high = np.searchsorted(self._changes.rows, [start, stop])
        given[self._changes.rows[low:high] - start] = self._changes.vectors[low:high]
        return given

    def _take(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        given = np.empty((len(rows), self.shape[1]), np.float32)
        places = np.searchsorted(self._changes.rows, rows)
        changed = np.append(self._changes.rows, -1)[places] == rows
        given[changed] = self._changes.vectors[places[changed]]
        given[~changed] = self._main[rows[~changed]]
        return given
