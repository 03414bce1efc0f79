"""The baseline: everyone gets the items that were chosen most often in training."""

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged, check_positive
from recsys.metrics import distinct


class PopularityList:
    """The candidates by training count, equal counts by row.

    Args:
        counts: [N], training events of each candidate.

    Attributes:
        counts: As given.
        order: [N], int64, item rows, most popular first.
    """

    def __init__(self, counts: NDArray[np.int64]) -> None:
        self.counts = counts
        self.order = np.argsort(-counts, kind="stable")
        self._places = np.empty(len(counts), np.int64)
        self._places[self.order] = np.arange(len(counts))

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
        taken = distinct(Ragged(exclude.offsets, self._places[exclude.rows]))
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
