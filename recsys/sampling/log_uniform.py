"""Zipf's law by rank: the most frequent candidate first, whatever the order of the rows."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.foundations import ArgumentError, check_shape
from recsys.sampling.draw import check_no_state, check_rows
from recsys.sampling.take import take


class LogUniformProposal:
    """The candidate of rank r with chance ``log((r + 2) / (r + 1)) / log(C + 1)``, r from 0.

    The rank is the position by falling count, ties by row; candidates without events come last and
    are drawn as well. A draw is O(1), by the inverse of the distribution; ranks take O(C log C)
    once.

    Args:
        counts: [C], training events of each candidate; only their order matters.

    Raises:
        ArgumentError: A count is negative or not finite, or there is none.
        ShapeError: `counts` is not [C].

    Source:
        The log-uniform candidate sampler of TensorFlow. Differs: that one takes the row for the
        rank, which is right only where rows are sorted by falling count.
    """

    def __init__(self, counts: NDArray[Any] | Tensor) -> None:
        counts = np.asarray(counts)
        check_shape("counts", counts, None)
        if not len(counts):
            raise ArgumentError("`counts` must hold one candidate or more, got none.")
        if not np.isfinite(counts).all() or (counts < 0).any():
            raise ArgumentError("`counts` must be finite and not negative.")
        self.num_candidates = len(counts)
        by_rank = np.argsort(-counts.astype(np.float64), kind="stable")
        self._row_of_rank = torch.from_numpy(by_rank)
        self._rank_of_row = torch.empty_like(self._row_of_rank)
        self._rank_of_row[self._row_of_rank] = torch.arange(self.num_candidates)

    def draw(self, num_draws: int, generator: torch.Generator) -> Tensor:
        """Draw with replacement: [num_draws], int64."""
        uniforms = torch.rand(num_draws, generator=generator, dtype=torch.float64)  # [0, 1)
        # r <= rank is drawn with chance log(rank + 2) / log(C + 1)
        ranks = (uniforms * math.log(self.num_candidates + 1)).exp().long() - 1
        last = self.num_candidates - 1
        return take(self._row_of_rank, ranks.clamp(max=last))  # rounding at the end

    def log_probability(self, rows: Tensor) -> Tensor:
        """Give the log probability: as `rows`, float64, always finite."""
        check_rows("rows", rows, self.num_candidates)
        return self._of_ranks(take(self._rank_of_row, rows))

    def levels(self) -> tuple[Tensor, Tensor]:
        """Give the log probability of each rank: [C], and [C] ones."""
        ranks = torch.arange(self.num_candidates)
        return self._of_ranks(ranks), torch.ones_like(ranks)

    def _of_ranks(self, ranks: Tensor) -> Tensor:
        shares = (1 / (ranks.double() + 1)).log1p()
        return shares.log() - math.log(math.log(self.num_candidates + 1))

    def update(self, positive_rows: Tensor) -> None:
        """Do nothing: the distribution is fixed."""

    def state_dict(self) -> dict[str, Tensor]:
        """Give nothing: the distribution is fixed."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Check that there is nothing to load."""
        check_no_state(state)
