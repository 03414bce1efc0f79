"""Draws from any discrete distribution at a cost that does not depend on its size."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.foundations import ArgumentError, check_shape
from recsys.sampling.uniform_integers import uniform_integers

_BLOCK = 1 << 20  # outcomes at a time: a few temporary arrays of 8 MB


class AliasTable:
    """An alias table: N buckets of equal weight, each shared by at most two outcomes.

    One draw takes a bucket and one of its two outcomes: O(1). The table is built in O(N) with
    prefix sums and one merge, and N is limited by memory only (`torch.multinomial` ends at 2^24).
    An outcome of weight 0 is never drawn. Memory is 16 bytes an outcome, and about 20 more while
    the table is built.

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
        # A bucket's two numbers stand side by side, so that a draw waits for one read of memory.
        # NumPy asks the system for huge pages where it allocates much, which torch does not.
        self._buckets = np.empty((len(weights), 2), dtype=np.int64)  # chance as bits, and alias
        keep_probability, alias = self._columns()
        np.multiply(weights, len(weights) / weights.sum(), out=keep_probability)
        _build(keep_probability, alias)
        self._table = torch.from_numpy(self._buckets)

    def __len__(self) -> int:
        return len(self._buckets)

    def draw(self, num_draws: int, generator: torch.Generator) -> Tensor:
        """Draw with replacement: [num_draws], int64."""
        buckets = uniform_integers(len(self), num_draws, generator)
        coins = torch.rand(num_draws, generator=generator, dtype=torch.float64)  # [0, 1)
        chosen = self._table.index_select(0, buckets)  # [num_draws, 2]
        return torch.where(coins < chosen.view(torch.float64)[:, 0], buckets, chosen[:, 1])

    def draw_probabilities(self) -> Tensor:
        """Give the probabilities that the table realises: [N], float64, sum 1."""
        keep_probability, alias = map(torch.from_numpy, self._columns())
        handed_on = torch.zeros_like(keep_probability)
        handed_on.index_add_(0, alias, 1 - keep_probability)
        return (keep_probability + handed_on) / len(self)

    def _columns(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Give each bucket's chance to keep its own outcome, and its other outcome; views."""
        return self._buckets.view(np.float64)[:, 0], self._buckets[:, 1]


def _check_weights(weights: NDArray[np.float64]) -> None:
    if not np.isfinite(weights).all() or (weights < 0).any():
        bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))[0]
        raise ArgumentError(
            f"`weights` must be finite and not negative, got {weights[bad]} at row {bad}."
        )
    if not weights.sum() > 0:
        raise ArgumentError("`weights` must hold one value above 0, got none.")


def _build(weights: NDArray[np.float64], alias: NDArray[np.int64]) -> None:
    """Build the table in place, from weights of mean 1, which become the chances to keep.

    Light outcomes (weight at most 1) leave room in their buckets; heavy ones fill it in turn. The
    heavy outcome whose running excess is the first to pass the room used so far is the alias. Once
    spent, it keeps what is left of it in its own bucket, whose room the next heavy one fills.
    Beside the table, this holds two numbers for each outcome at most.
    """
    light, heavy = np.flatnonzero(weights <= 1), np.flatnonzero(weights > 1)
    alias[:] = np.arange(len(alias))
    if len(heavy) == 0 or len(light) == 0:  # all weights equal, but for the rounding of the mean
        weights[:] = 1
        return
    excess = -_running_room(weights, heavy)[1:]
    room_before = _running_room(weights, light)  # rises to the same total, but for rounding
    for start in range(0, len(light), _BLOCK):
        rows = light[start : start + _BLOCK]
        used = room_before[start : start + len(rows)]
        filler = np.searchsorted(excess, used, side="right")
        alias[rows] = heavy[np.minimum(filler, len(heavy) - 1)]

    room = room_before[1:]
    spent_by = np.searchsorted(room, excess[:-1], side="left")  # the light one that empties it
    spent_by = np.minimum(spent_by, len(light) - 1)
    overdrawn = np.clip(room[spent_by] - excess[:-1], 0, 1)  # clip: rounding of the totals only
    weights[heavy[:-1]] = 1 - overdrawn
    weights[heavy[-1]] = 1
    alias[heavy[:-1]] = heavy[1:]


def _running_room(weights: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum ``1 - weight`` of the first 0, 1, ... of the rows: [len(rows) + 1].

    It goes in blocks of about sqrt(N): rounding then grows with sqrt(N), not with N.
    """
    width = int(np.ceil(np.sqrt(max(len(rows), 1))))
    sums = np.zeros(1 + width * width)
    for start in range(0, len(rows), _BLOCK):
        some = rows[start : start + _BLOCK]
        sums[1 + start : 1 + start + len(some)] = 1 - weights[some]
    blocks = sums[1:].reshape(width, width)
    np.cumsum(blocks, axis=1, out=blocks)
    blocks += np.concatenate([[0.0], blocks[:, -1].cumsum()[:-1]])[:, None]
    return sums[: 1 + len(rows)]
