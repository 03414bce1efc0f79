"""Lists of different lengths as two flat arrays."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Ragged:
    """N lists of rows: list i is ``rows[offsets[i] : offsets[i + 1]]``.

    Attributes:
        offsets: [N + 1], int64, from 0, never falling.
        rows: [offsets[-1]], integers.
    """

    offsets: NDArray[np.int64]
    rows: NDArray[Any]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, position: int) -> NDArray[Any]:
        return self.rows[self.offsets[position] : self.offsets[position + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Give the length of each list: [N], int64."""
        return self.offsets[1:] - self.offsets[:-1]  # many times faster than `diff` of few

    def take(self, positions: NDArray[Any]) -> Self:
        """Take lists by position, in the order given; positions may repeat."""
        starts = self.offsets[:-1][positions]
        lengths = self.offsets[1:][positions] - starts  # not of all lists: N may be large
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        flat = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return type(self)(offsets, self.rows[flat])

    def slice(self, start: int, stop: int) -> Self:
        """Give lists start to stop; `rows` is a view."""
        offsets = self.offsets[start : stop + 1]
        return type(self)(offsets - offsets[0], self.rows[offsets[0] : offsets[-1]])

    def owners(self) -> NDArray[np.int64]:
        """Give the list that each row stands in: [offsets[-1]], int64, never falling."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.lengths)

    @classmethod
    def from_pairs(cls, owners: NDArray[Any], rows: NDArray[Any], num_lists: int) -> Self:
        """Group rows by owner, keeping their order inside each list.

        Args:
            owners: [M], the list of each row, in [0, num_lists).
            rows: [M].
            num_lists: N; lists without rows are empty.
        """
        order = np.argsort(owners, kind="stable")
        counts = np.bincount(owners, minlength=num_lists)
        return cls(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), rows[order])

    @classmethod
    def empty(cls, num_lists: int) -> Self:
        """Make N empty lists."""
        return cls(np.zeros(num_lists + 1, np.int64), np.zeros(0, np.int64))
