"""The baseline: everyone gets the items that were chosen most often in training."""

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged, check_positive
from recsys.metrics import distinct


class PopularityList:
    """The candidates by training count, equal counts by row.

    Args:
        counts: [N], training events of each candidate.
        allowed: [A], int64, rising, the only rows that may be given; None: all N.

    Attributes:
        counts: As given.
        order: [A], int64, item rows, most popular first.
    """

    def __init__(self, counts: NDArray[np.int64], allowed: NDArray[np.int64] | None = None) -> None:
        self.counts = counts
        rows = np.arange(len(counts)) if allowed is None else allowed
        self.order = rows[np.argsort(-counts[rows], kind="stable")]
        self._places = np.full(len(counts), -1)
        self._places[self.order] = np.arange(len(self.order))

    def top(self, k: int, exclude: Ragged) -> Ragged:
        """Give each query the k most popular candidates that it may have.

        Args:
            k: At least 1.
            exclude: B lists of item rows in [0, N).

        Returns:
            B lists of item rows; shorter than k only where fewer candidates remain.

        Raises:
            ArgumentError: `k` is below 1.
        """
        check_positive("k", k)
        k = min(k, len(self.order))
        places = self._places[exclude.rows]
        inside = places >= 0
        owners = exclude.owners()[inside]
        taken = distinct(Ragged.from_pairs(owners, places[inside], len(exclude)))
        owners = taken.owners()
        places = taken.rows[np.lexsort((taken.rows, owners))]
        # Before the i-th excluded place p_i (from 0, rising) stand p_i - i free ones, so that the
        # j-th free place is j + the number of excluded places with p_i - i <= j.
        nth = np.arange(len(places)) - np.repeat(taken.offsets[:-1], taken.lengths)
        keys = owners * (k + 1) + np.minimum(places - nth, k)  # never falling
        wanted = np.arange(len(exclude))[:, None] * (k + 1) + np.arange(k)[None, :]  # [B, k]
        skipped = np.searchsorted(keys, wanted, side="right") - taken.offsets[:-1, None]
        free = np.arange(k)[None, :] + skipped
        there = free < len(self.order)
        offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
        return Ragged(offsets, self.order[free[there]])


def choose_lists(first: Ragged, second: Ragged, use_second: NDArray[np.bool_]) -> Ragged:
    """Take list b of the second where told so, else of the first."""
    both = Ragged(
        np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]]),
        np.concatenate([first.rows, second.rows]),
    )
    return both.take(np.arange(len(first)) + len(first) * use_second)
