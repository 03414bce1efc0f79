"""The positives of the other queries of the batch as candidates."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.sampling.draw import Draw, check_no_state, check_rows, draw_from
from recsys.sampling.popularity import popularity_probabilities


class InBatchSampler:
    """Take the batch's own positives, S = B; nothing is drawn.

    A batch of B events taken without replacement from an epoch of ``sum(counts)`` events holds a
    candidate ``B * count / sum(counts)`` times in expectation, exactly; that is its Q, on the
    query's own column as on all others. The own column leaves its row (`Draw.own_columns`).

    Args:
        counts: [C], how often the loader emits each candidate as a positive in an epoch.

    Raises:
        ArgumentError: A count is negative or not finite, or all are 0.
    """

    def __init__(self, counts: NDArray[Any] | Tensor) -> None:
        probabilities = popularity_probabilities(counts, 1.0)
        self.num_candidates = len(probabilities)
        self._log_probabilities = torch.from_numpy(probabilities).log()  # log 0 is -inf: Q = 0

    def draw(self, positive_rows: Tensor, generator: torch.Generator) -> Draw:
        """Give the positives as the sample: [B]; see `draw_from` for the errors."""
        return draw_from(self, positive_rows, generator)

    def draw_rows(self, positive_rows: Tensor, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """Give the positives: [B], int64."""
        return positive_rows

    def log_expected_count(self, rows: Tensor, batch_size: int) -> Tensor:
        """Give ``log(B * count / sum(counts))``: as `rows`, float64; -inf without events."""
        check_rows("rows", rows, self.num_candidates)
        return self._log_probabilities[rows] + math.log(max(batch_size, 1))

    def num_columns(self, batch_size: int) -> int:
        """Give S, which is B."""
        return batch_size

    def own_columns(self, batch_size: int) -> Tensor | None:
        """Give 0, 1, ..., B - 1: column b is query b's own positive."""
        return torch.arange(batch_size)

    def state_dict(self) -> dict[str, Tensor]:
        """Give nothing: the sampler does not change."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Check that there is nothing to load."""
        check_no_state(state)
