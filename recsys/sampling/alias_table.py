"""Draws from any discrete distribution at a cost that does not depend on its size."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.foundations import ArgumentError, check_shape
from recsys.sampling.uniform_integers import uniform_integers


class AliasTable:
    """An alias table: N buckets of equal weight, each shared by at most two outcomes.

    One draw takes a bucket and one of its two outcomes: O(1). The table is built in O(N) with
    prefix sums and one merge, and N is limited by memory only (`torch.multinomial` ends at 2^24).
    An outcome of weight 0 is never drawn.

    Args:
        weights: [N], float or integer; finite, not negative, not all 0; need not sum to 1.

    Raises:
        ArgumentError: A weight is negative or not finite, or none is above 0.
        ShapeError: `weights` is not [N].

    Source:
        "An efficient method for generating discrete random variables with general distributions",
        ACM TOMS 1977; the sweep over prefix sums in "Parallel weighted random sampling", ACM TOMS
        2022. Differs: the sweep's two pointers are a `searchsorted`.
    """

    def __init__(self, weights: NDArray[Any] | Tensor) -> None:
        weights = np.asarray(weights, dtype=np.float64)
        check_shape("weights", weights, None)
        _check_weights(weights)
        keep_probability, alias = _build(weights * (len(weights) / weights.sum()))
        self.keep_probability = torch.from_numpy(keep_probability)
        self.alias = torch.from_numpy(alias)

    def __len__(self) -> int:
        return len(self.alias)

    def draw(self, num_draws: int, generator: torch.Generator) -> Tensor:
        """Draw with replacement: [num_draws], int64."""
        buckets = uniform_integers(len(self), num_draws, generator)
        coins = torch.rand(num_draws, generator=generator, dtype=torch.float64)  # [0, 1)
        return torch.where(coins < self.keep_probability[buckets], buckets, self.alias[buckets])

    def draw_probabilities(self) -> Tensor:
        """Give the probabilities that the table realises: [N], float64, sum 1."""
        handed_on = torch.zeros_like(self.keep_probability)
        handed_on.index_add_(0, self.alias, 1 - self.keep_probability)
        return (self.keep_probability + handed_on) / len(self)


def _check_weights(weights: NDArray[np.float64]) -> None:
    if not np.isfinite(weights).all() or (weights < 0).any():
        bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))[0]
        raise ArgumentError(
            f"`weights` must be finite and not negative, got {weights[bad]} at row {bad}."
        )
    if not weights.sum() > 0:
        raise ArgumentError("`weights` must hold one value above 0, got none.")


def _build(scaled: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Build the table from weights of mean 1.

    Light outcomes (weight at most 1) leave room in their buckets; heavy ones fill it in turn. The
    heavy outcome whose running excess is the first to pass the room used so far is the alias. Once
    spent, it keeps what is left of it in its own bucket, whose room the next heavy one fills.
    """
    keep_probability = np.minimum(scaled, 1.0)
    alias = np.arange(len(scaled), dtype=np.int64)
    light, heavy = np.flatnonzero(scaled <= 1), np.flatnonzero(scaled > 1)
    if len(heavy) == 0 or len(light) == 0:  # all weights equal, but for the rounding of the mean
        return np.ones_like(scaled), alias
    room = _running_sum(1 - scaled[light])  # rises to the same total as `excess`, but for rounding
    excess = _running_sum(scaled[heavy] - 1)
    room_before = np.concatenate([[0.0], room])[:-1]
    filler = np.searchsorted(excess, room_before, side="right")
    alias[light] = heavy[np.minimum(filler, len(heavy) - 1)]

    spent_by = np.searchsorted(room, excess[:-1], side="left")  # the light one that empties it
    spent_by = np.minimum(spent_by, len(light) - 1)
    overdrawn = np.clip(room[spent_by] - excess[:-1], 0, 1)  # clip: rounding of the totals only
    keep_probability[heavy[:-1]] = 1 - overdrawn
    alias[heavy[:-1]] = heavy[1:]
    return keep_probability, alias


def _running_sum(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum in blocks of about sqrt(N): rounding then grows with sqrt(N), not with N."""
    width = int(np.ceil(np.sqrt(max(len(values), 1))))
    padded = np.zeros(width * width)
    padded[: len(values)] = values
    within = padded.reshape(width, width).cumsum(axis=1)
    before = np.concatenate([[0.0], within[:, -1].cumsum()[:-1]])
    return np.asarray((within + before[:, None]).reshape(-1)[: len(values)])
