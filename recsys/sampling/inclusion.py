"""Chances that a candidate is in a sample at all, however often."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.foundations import ArgumentError


def inclusion_probability(
    draw_probability: NDArray[np.float64], num_draws: int
) -> NDArray[np.float64]:
    """Compute ``1 - (1 - p)^T``: at least one of T independent draws yields the candidate.

    Exact also for tiny p, where the formula as written loses every digit.

    Args:
        draw_probability: Any shape, float64, in [0, 1].
        num_draws: T, at least 0.

    Returns:
        As `draw_probability`, float64.

    Raises:
        ArgumentError: A probability is outside [0, 1].
    """
    p = np.asarray(draw_probability, dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise ArgumentError("`draw_probability` must be in [0, 1].")
    with np.errstate(divide="ignore"):  # log1p(-1) is -inf, and the chance is 1
        return np.asarray(-np.expm1(num_draws * np.log1p(-p)))


def inclusion_probability_without_replacement(
    counts: NDArray[Any], num_draws: int
) -> NDArray[np.float64]:
    """Compute ``1 - C(N - count, T) / C(N, T)``: T of N events are taken, as from a shuffled epoch.

    Args:
        counts: [C], integers: events of each candidate; N is their sum.
        num_draws: T, in [0, N]; the cost grows with it.

    Returns:
        [C], float64.

    Raises:
        ArgumentError: `num_draws` is not in [0, N].
    """
    counts = np.asarray(counts, dtype=np.float64)
    total = counts.sum()
    if not 0 <= num_draws <= total:
        raise ArgumentError(f"`num_draws` must be in [0, {total:.0f}], got {num_draws}.")
    log_missed = np.zeros_like(counts)  # no draw so far yields the candidate
    with np.errstate(divide="ignore"):  # no other event is left: certain
        for taken in range(num_draws):
            log_missed += np.log1p(-np.minimum(counts / (total - taken), 1))
    return np.asarray(-np.expm1(log_missed))


def log_inclusion_probability(log_probability: Tensor, num_draws: int) -> Tensor:
    """Compute ``log(1 - (1 - p)^T)`` from log p: at least one of T draws yields the candidate.

    Args:
        log_probability: Any shape, float64, at most 0; -inf for what is never drawn.
        num_draws: T, at least 1.

    Returns:
        As `log_probability`, float64; -inf stays.
    """
    return _log_of_one_minus_exp(num_draws * torch.log1p(-log_probability.exp()))


def log_poisson_inclusion_probability(log_probability: Tensor, mean_draws: float) -> Tensor:
    """Compute ``log(1 - exp(-S p))`` from log p: as above, where the draws are Poisson(S) many.

    Args:
        log_probability: Any shape, float64, at most 0; -inf for what is never drawn.
        mean_draws: S, above 0.

    Returns:
        As `log_probability`, float64; -inf stays.
    """
    return _log_of_one_minus_exp(-mean_draws * log_probability.exp())


def _log_of_one_minus_exp(negative: Tensor) -> Tensor:
    return (-torch.expm1(negative)).log()
