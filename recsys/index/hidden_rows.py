"""Rows of an index that no query may get: withdrawn, or standing elsewhere with another vector.

Dimensions: C candidates, n listed rows.
"""

from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

_SHARE_THAT_IS_LISTED = 1 / 2  # of the candidates; fewer rows are chosen, not masked


class HiddenRows:
    """Candidates that no query may get, kept beside an index from search to search.

    Args:
        hidden: [C], bool; kept, not copied.

    Attributes:
        count: How many are hidden.
        mask: As given.
    """

    def __init__(self, hidden: NDArray[np.bool_]) -> None:
        self.mask = hidden
        self.count = int(np.count_nonzero(hidden))

    @classmethod
    def of(cls, rows: NDArray[np.int64], num_candidates: int) -> Self:
        """Hide rows [n] of C candidates; those beyond are none."""
        mask = np.zeros(num_candidates, np.bool_)
        mask[rows[rows < num_candidates]] = True
        return cls(mask)

    @property
    def num_shown(self) -> int:
        """Count those that are not hidden."""
        return len(self.mask) - self.count

    @cached_property
    def shown_bits(self) -> NDArray[np.uint8]:
        """Give what is not hidden, a bit a candidate, lowest first."""
        return np.packbits(~self.mask, bitorder="little")

    @cached_property
    def shown_rows(self) -> NDArray[np.int64] | None:
        """Give the rows that are not hidden; None where they are too many to be worth a list."""
        if self.num_shown > _SHARE_THAT_IS_LISTED * len(self.mask):
            return None
        return np.flatnonzero(~self.mask)
