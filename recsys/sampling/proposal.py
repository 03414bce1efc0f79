"""Distributions over the catalogue that can be drawn from and can name their own probabilities.

Dimensions: C candidates in the catalogue.
"""

import math
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.foundations import ArgumentError, check_count
from recsys.sampling.alias_table import AliasTable
from recsys.sampling.draw import check_no_state, check_rows
from recsys.sampling.popularity import popularity_probabilities
from recsys.sampling.take import take
from recsys.sampling.uniform_integers import uniform_integers


class Proposal(Protocol):
    """A distribution over the catalogue; the same for every query."""

    @property
    def num_candidates(self) -> int:
        """Give C."""
        ...

    def draw(self, num_draws: int, generator: torch.Generator) -> Tensor:
        """Draw independently, with replacement: [num_draws], int64."""
        ...

    def log_probability(self, rows: Tensor) -> Tensor:
        """Give the log of the chance that one draw yields each: as `rows`, float64, -inf for 0."""
        ...

    def levels(self) -> tuple[Tensor, Tensor]:
        """Give log probabilities and how many candidates have each: [K] float64, [K] int64.

        All candidates are counted, those of probability 0 too; K is at most C.
        """
        ...

    def update(self, positive_rows: Tensor) -> None:
        """Learn from a step's positives: [B], int64; most distributions do not."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """Give what a checkpoint must hold; empty for a distribution that does not change."""
        ...

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up the state that `state_dict` gave."""
        ...


class UniformProposal:
    """Every candidate with chance ``1 / C``; O(1) a draw.

    Args:
        num_candidates: C, at least 1.

    Raises:
        ArgumentError: It is below 1.
    """

    def __init__(self, num_candidates: int) -> None:
        check_count("num_candidates", num_candidates)
        self.num_candidates = num_candidates

    def draw(self, num_draws: int, generator: torch.Generator) -> Tensor:
        """Draw with replacement: [num_draws], int64."""
        return uniform_integers(self.num_candidates, num_draws, generator)

    def log_probability(self, rows: Tensor) -> Tensor:
        """Give ``-log C``: as `rows`, float64."""
        check_rows("rows", rows, self.num_candidates)
        return torch.full(rows.shape, -math.log(self.num_candidates), dtype=torch.float64)

    def levels(self) -> tuple[Tensor, Tensor]:
        """Give ``-log C``, of all: [1] and [1]."""
        number = torch.tensor([self.num_candidates])
        return self.log_probability(torch.zeros_like(number)), number

    def update(self, positive_rows: Tensor) -> None:
        """Do nothing: the distribution is fixed."""

    def state_dict(self) -> dict[str, Tensor]:
        """Give nothing: the distribution is fixed."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Check that there is nothing to load."""
        check_no_state(state)


class PopularityProposal:
    """Every candidate with chance ``count^alpha / sum``; O(1) a draw, by an alias table.

    Args:
        counts: [C], training events of each candidate, as the loader emits them.
        alpha: See `popularity_probabilities`.

    Raises:
        ArgumentError: See `popularity_probabilities`; or `alpha` is so far from 0 that a candidate
            with events would have no chance that a float64 can hold.
    """

    def __init__(self, counts: NDArray[Any] | Tensor, *, alpha: float) -> None:
        probabilities = popularity_probabilities(counts, alpha)
        if (probabilities[np.asarray(counts) > 0] == 0).any():
            raise ArgumentError(
                f"`alpha` must leave every candidate with events a chance above 0, got {alpha}."
            )
        self.num_candidates = len(probabilities)
        self._table = AliasTable(probabilities)
        self._log_probabilities = torch.from_numpy(probabilities).log_()  # log 0 is -inf: Q = 0

    def draw(self, num_draws: int, generator: torch.Generator) -> Tensor:
        """Draw with replacement: [num_draws], int64."""
        return self._table.draw(num_draws, generator)

    def log_probability(self, rows: Tensor) -> Tensor:
        """Give the log probability: as `rows`, float64; -inf without events, unless alpha is 0."""
        check_rows("rows", rows, self.num_candidates)
        return take(self._log_probabilities, rows)

    def levels(self) -> tuple[Tensor, Tensor]:
        """Give the different log probabilities, rising, and how many have each; O(C log C)."""
        log_probabilities, numbers = self._log_probabilities.unique(return_counts=True)
        return log_probabilities, numbers

    def update(self, positive_rows: Tensor) -> None:
        """Do nothing: the distribution is fixed."""

    def state_dict(self) -> dict[str, Tensor]:
        """Give nothing: the distribution is fixed."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Check that there is nothing to load."""
        check_no_state(state)
