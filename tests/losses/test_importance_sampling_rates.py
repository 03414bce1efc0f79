"""How the importance-sampling gradient's bias and noise fall, exactly, over every sample.

Samples of S draws from three candidates with the same counts give the same gradient, so each
vector of counts is one row, weighed by its multinomial chance; c copies of a candidate are one
column with ``Q / c``.
"""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recsys.losses import importance_sampling_loss

SCORES = torch.tensor([0.3, -0.4, 1.1], dtype=torch.float64)
PROPOSAL = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
P = SCORES.softmax(dim=0)
FULL = P - torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)  # the positive is candidate 2
SIZES = (8, 16, 32, 64, 128, 256, 512)


def gradients(rows: Tensor, log_q: Tensor, mask: Tensor | None = None) -> Tensor:
    """Give the gradient of each sample [N, S] of three candidates: [N, 3]."""
    count = len(rows)
    leaf = SCORES.repeat(count, 1).requires_grad_()
    losses = importance_sampling_loss(
        torch.ones(count, 1, dtype=torch.float64),
        leaf[:, 2:],
        leaf.gather(1, rows)[..., None],
        sampled_log_q=log_q,
        temperature=1.0,
        sampled_mask=mask,
    )
    return torch.autograd.grad(losses.sum(), [leaf])[0]


def all_counts(size: int, proposal: Tensor) -> tuple[Tensor, Tensor]:
    """Give the counts of three candidates in `size` draws, [N, 3], and their chances, [N]."""
    first, second = np.divmod(np.arange((size + 1) ** 2), size + 1)
    kept = first + second <= size
    counts = torch.from_numpy(np.stack([first, second, size - first - second], axis=1)[kept])
    log_ways = math.lgamma(size + 1) - torch.lgamma(counts.double() + 1).sum(dim=1)
    return counts, (log_ways + (counts * proposal.log()).sum(dim=1)).exp()


def gradients_of_counts(counts: Tensor, size: int, proposal: Tensor) -> Tensor:
    mask = counts > 0
    log_q = (size * proposal / counts.clamp(min=1)).log()
    return gradients(torch.arange(3).expand(counts.shape), log_q, mask)


def bias_and_error(size: int) -> tuple[Tensor, float]:
    """Give the mean gradient less the full one, [3], and the root mean squared error; exact."""
    counts, chances = all_counts(size, PROPOSAL)
    errors = gradients_of_counts(counts, size, PROPOSAL) - FULL
    bias = (chances[:, None] * errors).sum(dim=0)
    return bias, (chances * errors.square().sum(dim=1)).sum().sqrt().item()


def slope(sizes: tuple[int, ...], values: list[float]) -> float:
    """Give the slope of a line through the logs."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def test_counts_stand_for_the_draws_one_by_one() -> None:
    rows = torch.tensor(list(itertools.product(range(3), repeat=4)))
    counts = torch.stack([(rows == y).sum(dim=1) for y in range(3)], dim=1)
    one_by_one = gradients(rows, (4 * PROPOSAL).log()[rows])
    assert_close(gradients_of_counts(counts, 4, PROPOSAL), one_by_one, rtol=0, atol=1e-14)


def test_bias_falls_as_one_over_the_sample_size_and_noise_as_one_over_its_root() -> None:
    measured = [bias_and_error(size) for size in SIZES]
    biases = [bias.norm().item() for bias, _ in measured]
    errors = [error for _, error in measured]
    # The next terms are smaller by 1 / S: at S = 8 they still bend the lines a little.
    assert -1.1 < slope(SIZES, biases) < -0.95
    assert -1.02 < slope(SIZES[3:], biases[3:]) < -0.98
    assert -0.55 < slope(SIZES, errors) < -0.48
    assert -0.51 < slope(SIZES[3:], errors[3:]) < -0.49


def test_bias_and_noise_have_the_sizes_that_the_expansion_states() -> None:
    # A ratio of two means of S draws each: S * bias_c tends to P_c (sum P^2 / q - P_c / q_c), and
    # S * variance_c to sum over k of P_k^2 / q_k (1[k = c] - P_c)^2.
    bias, error = bias_and_error(512)
    ratio = P.square() / PROPOSAL
    assert_close(512 * bias, P * (ratio.sum() - P / PROPOSAL), rtol=0.02, atol=0)
    variance = (ratio * (torch.eye(3, dtype=torch.float64) - P[:, None]).square()).sum()
    assert_close(512 * error**2, variance.item(), rtol=0.02, atol=0)


def test_draws_from_the_model_itself_are_unbiased_for_every_sample_size() -> None:
    for size in (1, 2, 8, 32):
        counts, chances = all_counts(size, P)
        samples = gradients_of_counts(counts, size, P)
        mean = (chances[:, None] * samples).sum(dim=0)
        assert_close(mean, FULL, rtol=0, atol=1e-12)
        # All weights are 1 / S: the gradient is the Monte-Carlo one, with its error.
        error = (chances * (samples - FULL).square().sum(dim=1)).sum()
        assert_close(error, (1 - P.square().sum()) / size, rtol=1e-10, atol=0)


def test_noise_is_as_the_expansion_states_on_a_larger_catalogue_too() -> None:
    # 300 candidates and 1000 samples: measured errors are within about 2 % of the true ones.
    generator = torch.Generator().manual_seed(0)
    scores = 0.5 * torch.randn(300, generator=generator)
    proposal = torch.rand(300, generator=generator) + 0.5
    proposal, full = proposal / proposal.sum(), scores.softmax(dim=0)
    ratio = full.square() / proposal
    variance = (ratio * (torch.eye(300) - full[:, None]).square()).sum().item()
    for size in (64, 256, 1024):
        rows = torch.multinomial(proposal, 1000 * size, replacement=True, generator=generator)
        rows = rows.reshape(1000, size)
        biases = scores[rows].requires_grad_()
        losses = importance_sampling_loss(
            torch.zeros(1000, 1),
            torch.zeros(1000, 1),
            torch.zeros(1000, size, 1),
            sampled_log_q=(size * proposal).log()[rows],
            temperature=1.0,
            sampled_biases=biases,
        )
        (weights,) = torch.autograd.grad(losses.sum(), [biases])
        means = torch.zeros(1000, 300).scatter_add_(1, rows, weights)
        error = (means - full).square().sum(dim=1).mean().sqrt().item()
        assert error == pytest.approx(math.sqrt(variance / size), rel=0.05)
