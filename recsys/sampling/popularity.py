"""Candidates drawn by their frequency in the training data, raised to a power."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.foundations import ArgumentError, check_positive, check_shape
from recsys.sampling.alias_table import AliasTable
from recsys.sampling.draw import Draw, check_no_state, check_rows, draw_from


def popularity_probabilities(counts: NDArray[Any] | Tensor, alpha: float) -> NDArray[np.float64]:
    """Compute the draw probability ``count^alpha / sum of count^alpha``.

    Args:
        counts: [C], training events of each candidate; not negative, not all 0.
        alpha: Any finite number. 1 follows the data, 0.75 is word2vec's choice, 0 draws every
            candidate alike (also those without events), a negative one prefers the rare. With any
            alpha but 0, a candidate without events has probability 0.

    Returns:
        [C], float64, sum 1.

    Raises:
        ArgumentError: A count is negative or not finite, or all are 0; `alpha` is not finite.
    """
    counts = np.asarray(counts, dtype=np.float64)
    check_shape("counts", counts, None)
    if not np.isfinite(alpha):
        raise ArgumentError(f"`alpha` must be finite, got {alpha}.")
    if not np.isfinite(counts).all() or (counts < 0).any():
        raise ArgumentError("`counts` must be finite and not negative.")
    if not (counts > 0).any():
        raise ArgumentError("`counts` must hold one value above 0, got none.")
    if alpha == 0:
        return np.full(len(counts), 1 / len(counts))
    log_weights = np.full(len(counts), -np.inf)
    seen = counts > 0
    log_weights[seen] = alpha * np.log(counts[seen])
    weights = np.exp(log_weights - log_weights.max())  # no alpha overflows
    return np.asarray(weights / weights.sum(), dtype=np.float64)


class PopularitySampler:
    """Draw S candidates a batch with replacement, each with chance ``count^alpha / sum``.

    The expected count is ``S * probability``, exactly; repeats stay as separate terms.

    Args:
        counts: [C], training events of each candidate, as the loader emits them.
        alpha: See `popularity_probabilities`.
        num_sampled: S, at least 1.

    Raises:
        ArgumentError: See `popularity_probabilities`; `num_sampled` is below 1.
    """

    def __init__(self, counts: NDArray[Any] | Tensor, *, alpha: float, num_sampled: int) -> None:
        check_positive("num_sampled", num_sampled)
        probabilities = popularity_probabilities(counts, alpha)
        self.num_candidates = len(probabilities)
        self.num_sampled = num_sampled
        self._table = AliasTable(probabilities)
        self._log_probabilities = torch.from_numpy(probabilities).log()  # log 0 is -inf: Q = 0

    def draw(self, positive_rows: Tensor, generator: torch.Generator) -> Draw:
        """Draw [S] candidates shared by the batch; see `draw_from` for the errors."""
        return draw_from(self, positive_rows, generator)

    def draw_rows(self, positive_rows: Tensor, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """Draw candidates only: [S], int64."""
        return self._table.draw(self.num_sampled, generator)

    def log_expected_count(self, rows: Tensor, batch_size: int) -> Tensor:  # noqa: ARG002
        """Give ``log(S * probability)``: as `rows`, float64; -inf without events."""
        check_rows("rows", rows, self.num_candidates)
        return self._log_probabilities[rows] + math.log(self.num_sampled)

    def num_columns(self, batch_size: int) -> int:  # noqa: ARG002
        """Give S."""
        return self.num_sampled

    def own_columns(self, batch_size: int) -> Tensor | None:  # noqa: ARG002
        """Give None: a positive is drawn by accident only."""
        return None

    def state_dict(self) -> dict[str, Tensor]:
        """Give nothing: the sampler does not change."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Check that there is nothing to load."""
        check_no_state(state)
