"""How often the loader emits a candidate as a positive: the Q of candidates that are positives."""

import math
from collections.abc import Mapping
from typing import Any, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.sampling.draw import check_no_state, check_rows
from recsys.sampling.popularity import popularity_probabilities
from recsys.sampling.take import take


class Popularity(Protocol):
    """The rate at which the loader emits each candidate as a positive, known or estimated."""

    def log_rate(self, rows: Tensor, num_positives: float) -> Tensor:
        """Give the log of the expected count among that many positives: as `rows`, float64."""
        ...

    def update(self, positive_rows: Tensor) -> None:
        """Learn from a step's positives, once a step and after their use: [B], int64."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """Give what a checkpoint must hold; empty for what does not change."""
        ...

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up the state that `state_dict` gave."""
        ...


class ExactPopularity:
    """The rate from counts of a whole epoch.

    n events taken without replacement from an epoch of ``sum(counts)`` events hold a candidate
    ``n * count / sum(counts)`` times in expectation, exactly.

    Args:
        counts: [C], how often the loader emits each candidate as a positive in an epoch.

    Raises:
        ArgumentError: A count is negative or not finite, or all are 0.
    """

    def __init__(self, counts: NDArray[Any] | Tensor) -> None:
        probabilities = popularity_probabilities(counts, 1.0)
        self.num_candidates = len(probabilities)
        self._log_probabilities = torch.from_numpy(probabilities).log_()  # log 0 is -inf: Q = 0

    def log_rate(self, rows: Tensor, num_positives: float) -> Tensor:
        """Give ``log(n * count / sum(counts))``: as `rows`, float64; -inf for 0."""
        check_rows("rows", rows, self.num_candidates)
        log_count = math.log(num_positives) if num_positives > 0 else -math.inf
        return take(self._log_probabilities, rows) + log_count

    def update(self, positive_rows: Tensor) -> None:
        """Do nothing: the counts are known."""

    def state_dict(self) -> dict[str, Tensor]:
        """Give nothing: the counts are known."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Check that there is nothing to load."""
        check_no_state(state)
