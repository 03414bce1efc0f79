"""How many draws from the softmax itself a weighted sample is worth.

Dimensions: B queries, S sampled candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from recsys.foundations import ShapeError, check_floats
from recsys.losses.softmax_core import widen


def effective_sample_size(log_weights: Tensor) -> Tensor:
    """Compute ``(sum of r)^2 / sum of r^2`` over the weights r of each row, from their logs.

    It is S where all weights are equal, and 1 where one weight is all there is. Adding a constant
    to a row changes nothing. No gradient flows through it.

    Args:
        log_weights: [B, S] or [S], float; log of ``exp(score / temperature) / Q``. -inf: weight 0.

    Returns:
        [B], or [] for one row; float32 or wider; from 1 to S, and 0 where no weight is above 0.

    Raises:
        ShapeError: `log_weights` is neither [B, S] nor [S].
        ArgumentError: It does not hold floating-point numbers.

    Source:
        "Adaptive importance sampling to accelerate training of a neural probabilistic language
        model", IEEE TNN 2008.
    """
    return WeightSums.of(log_weights).effective_sample_size()


@dataclass(frozen=True)
class WeightSums:
    """Sums of weights and of their squares, kept by their logs against the largest weight.

    exp of a score overflows long before its log loses a digit.

    Attributes:
        log_peak: [B]; log of the largest weight; -inf where none is above 0.
        total: [B]; sum of the weights, divided by ``exp(log_peak)``.
        squares: [B]; sum of their squares, divided by ``exp(2 * log_peak)``.
    """

    log_peak: Tensor
    total: Tensor
    squares: Tensor

    @staticmethod
    def of(log_weights: Tensor) -> WeightSums:
        """Sum the weights of each row of [B, S], or of the only row [S]."""
        if log_weights.dim() not in (1, 2):
            raise ShapeError(
                f"`log_weights` must have shape [any, any] or [any], got {list(log_weights.shape)}."
            )
        check_floats("log_weights", log_weights)
        log_weights = widen(log_weights.detach())
        if log_weights.shape[-1] == 0:  # amax refuses it
            zeros = log_weights.sum(dim=-1)
            return WeightSums(zeros - float("inf"), zeros, zeros)
        peak = log_weights.amax(dim=-1)
        weights = (log_weights - _finite(peak)[..., None]).exp_()
        return WeightSums(peak, weights.sum(dim=-1), weights.square_().sum(dim=-1))

    def plus(self, other: WeightSums) -> WeightSums:
        """Give the sums over both samples."""
        peak = torch.maximum(self.log_peak, other.log_peak)
        mine = (self.log_peak - _finite(peak)).exp()
        theirs = (other.log_peak - _finite(peak)).exp()
        total = self.total * mine + other.total * theirs
        squares = self.squares * mine.square() + other.squares * theirs.square()
        return WeightSums(peak, total, squares)

    def effective_sample_size(self) -> Tensor:
        """Give ``total^2 / squares``, and 0 where there is nothing."""
        return torch.where(self.squares > 0, self.total.square() / self.squares, self.squares)


def _finite(log_peak: Tensor) -> Tensor:
    """Put 0 for -inf: -inf less -inf would be NaN, and any finite number does."""
    return log_peak.masked_fill(log_peak == float("-inf"), 0)
