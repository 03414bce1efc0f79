"""Statements of docs/theory.md, by enumeration of every sample and every target.

One query over four candidates. With a query of length 1 and embeddings of one dimension,
embeddings are scores. Expectations are exact sums, so that tolerances are those of rounding.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import make_generator
from recsys.losses import (
    bpr_loss,
    effective_sample_size,
    full_logistic_loss,
    full_softmax_loss,
    importance_sampling_loss,
    negative_sampling_loss,
    noise_contrastive_loss,
    sampled_logistic_loss,
    sampled_softmax_loss,
)
from recsys.sampling import (
    DrawRequest,
    MixedSampler,
    PopularityProposal,
    Sampler,
    UniformProposal,
    WithReplacementSampler,
)

C = 4
P = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)  # of the target
ZERO = torch.zeros(C, dtype=torch.float64)


@dataclass(frozen=True)
class Ways:
    """Every way in which target and sample may come.

    Attributes:
        chances: [N].
        targets: [N].
        rows: [N, S].
        mask: [N, S], bool; what is in the sample.
        log_q: [C], of the expected counts.
    """

    chances: Tensor
    targets: Tensor
    rows: Tensor
    mask: Tensor
    log_q: Tensor


def ways_of_coins() -> Ways:
    """Each candidate enters the sample on its own coin, with chance Q."""
    q = torch.tensor([0.9, 0.2, 0.5, 0.7], dtype=torch.float64)
    mask = torch.tensor(list(itertools.product([False, True], repeat=C))).repeat(C, 1)
    targets = torch.arange(C).repeat_interleave(2**C)
    chances = P[targets] * torch.where(mask, q, 1 - q).prod(dim=1)
    return Ways(chances, targets, torch.arange(C).expand(len(mask), C), mask, q.log())


def ways_of_draws(size: int = 3) -> Ways:
    """So many draws with replacement, repeats kept; Q is size * q."""
    q = torch.tensor([0.5, 0.2, 0.05, 0.25], dtype=torch.float64)
    rows = torch.tensor(list(itertools.product(range(C), repeat=size))).repeat(C, 1)
    targets = torch.arange(C).repeat_interleave(C**size)
    chances = P[targets] * q[rows].prod(dim=1)
    mask = torch.ones_like(rows, dtype=torch.bool)
    return Ways(chances, targets, rows, mask, (size * q).log())


WAYS = {"coins": ways_of_coins(), "draws": ways_of_draws()}


def losses_of(
    loss: Callable[..., Tensor],
    ways: Ways,
    scores: Tensor,
    log_q: Tensor | None,
    temperature: float,
) -> Tensor:
    """Give the loss of every way: [N]."""
    log_qs = {} if log_q is None else {"positive_log_q": log_q[ways.targets]}
    if log_q is not None:
        log_qs["sampled_log_q"] = log_q[ways.rows]
    return loss(
        torch.ones(len(ways.targets), 1, dtype=torch.float64),
        scores[ways.targets, None],
        scores[ways.rows][..., None],
        positive_rows=ways.targets,
        sampled_rows=ways.rows,
        sampled_mask=ways.mask,
        temperature=temperature,
        **log_qs,
    )


def mean_gradient(
    loss: Callable[..., Tensor],
    ways: Ways,
    scores: Tensor,
    log_q: Tensor | None,
    temperature: float = 1.0,
) -> Tensor:
    """Give the expected gradient with respect to the scores: [C]."""
    leaf = scores.clone().requires_grad_()
    losses = losses_of(loss, ways, leaf, log_q, temperature)
    return torch.autograd.grad((losses * ways.chances).sum(), [leaf])[0]


uncorrected_softmax_loss = partial(sampled_softmax_loss, positive_log_q=None, sampled_log_q=None)
hits_kept_softmax_loss = partial(sampled_softmax_loss, remove_accidental_hits=False)


def assert_zero(gradient: Tensor) -> None:
    assert_close(gradient, ZERO, rtol=0, atol=1e-14)


def test_the_full_softmax_gradient_is_the_models_share_less_the_targets() -> None:
    leaf = torch.tensor([0.3, -1.0, 0.2, 0.9], dtype=torch.float64, requires_grad=True)
    losses = full_softmax_loss(
        torch.ones(C, 1, dtype=torch.float64),
        leaf[:, None],
        positive_rows=torch.arange(C),
        temperature=1.0,
    )
    (gradient,) = torch.autograd.grad((losses * P).sum(), [leaf])
    assert_close(gradient, torch.softmax(leaf.detach(), dim=0) - P)


def test_the_corrected_softmax_is_the_posterior_of_the_target_given_the_candidates() -> None:
    # Of all the ways to the same set of candidates (target and sample), the share in which a given
    # one is the target is what the softmax at F = log P + K gives it.
    ways = WAYS["coins"]
    losses = losses_of(sampled_softmax_loss, ways, P.log() + 3, ways.log_q, 1.0)
    sets = ways.mask | torch.nn.functional.one_hot(ways.targets, C).bool()
    keys = (sets * 2 ** torch.arange(C)).sum(dim=1)
    of_set = torch.zeros(2**C, dtype=torch.float64).index_add(0, keys, ways.chances)
    same = (keys[:, None] == keys) & (ways.targets[:, None] == ways.targets)
    of_set_and_target = torch.where(same, ways.chances, 0).sum(dim=1)
    assert_close(torch.exp(-losses), of_set_and_target / of_set[keys], rtol=1e-12, atol=0)


def test_with_replacement_log_p_is_the_optimum_where_hits_stay() -> None:
    ways = WAYS["draws"]
    assert_zero(mean_gradient(hits_kept_softmax_loss, ways, P.log() + 3, ways.log_q))
    assert mean_gradient(sampled_softmax_loss, ways, P.log() + 3, ways.log_q).norm() > 0.005


def test_without_correction_the_optimum_is_the_log_of_p_over_q() -> None:
    ways = WAYS["coins"]
    assert_zero(mean_gradient(uncorrected_softmax_loss, ways, P.log() - ways.log_q, None))
    assert mean_gradient(uncorrected_softmax_loss, ways, P.log(), None).norm() > 0.05


def test_log_q_divided_by_the_temperature_moves_the_optimum_by_a_power_of_q() -> None:
    # (s - log Q) / tau = log P - log Q + K is s / tau = log P + (1 / tau - 1) log Q + K.
    ways, temperature = WAYS["coins"], 0.25
    wrong = ways.log_q / temperature
    right_scores = temperature * (P.log() + 3)
    wrong_scores = temperature * (P.log() + 3 * ways.log_q)
    gradient = partial(mean_gradient, sampled_softmax_loss, ways, temperature=temperature)
    assert_zero(gradient(right_scores, ways.log_q))
    assert_zero(gradient(wrong_scores, wrong))
    assert gradient(right_scores, wrong).norm() > 0.05


@pytest.mark.parametrize("way", WAYS)
def test_negative_sampling_is_trained_towards_the_log_of_p_over_q(way: str) -> None:
    scores = P.log() - WAYS[way].log_q
    assert_zero(mean_gradient(negative_sampling_loss, WAYS[way], scores, None))


@pytest.mark.parametrize("way", WAYS)
def test_noise_contrastive_estimation_is_trained_towards_log_p(way: str) -> None:
    ways = WAYS[way]
    assert_zero(mean_gradient(noise_contrastive_loss, ways, P.log(), ways.log_q))
    # Q stated twice too large: the scores take up the constant, which a softmax would ignore.
    doubled = ways.log_q + math.log(2)
    assert_zero(mean_gradient(noise_contrastive_loss, ways, P.log() + math.log(2), doubled))


@pytest.mark.parametrize("way", WAYS)
def test_sampled_logistic_is_trained_towards_the_log_odds(way: str) -> None:
    ways = WAYS[way]
    assert_zero(mean_gradient(sampled_logistic_loss, ways, P.logit(), ways.log_q))


def test_full_logistic_is_trained_towards_the_log_odds() -> None:
    leaf = P.logit().requires_grad_()
    losses = full_logistic_loss(
        torch.ones(C, 1, dtype=torch.float64),
        leaf[:, None],
        positive_rows=torch.arange(C),
        temperature=1.0,
    )
    assert_zero(torch.autograd.grad((losses * P).sum(), [leaf])[0])


def test_bpr_is_trained_towards_the_log_of_p_over_q() -> None:
    ways = ways_of_draws(size=1)
    assert_zero(mean_gradient(bpr_loss, ways, P.log() - ways.log_q, None))


def importance_sampling_bias(scores: Tensor, q: Tensor, size: int) -> Tensor:
    """Give the expected gradient over all samples less the full softmax's: [3], exact.

    n copies of a column are one column with Q / n, so that a sample is three columns.
    """
    counts = torch.tensor(
        [(a, b, size - a - b) for a in range(size + 1) for b in range(size + 1 - a)]
    ).double()  # [N, 3]
    log_ways = math.lgamma(size + 1) - torch.lgamma(counts + 1).sum(dim=1)
    chances = (log_ways + (counts * q.log()).sum(dim=1)).exp()  # [N]
    leaf = scores.clone().requires_grad_()
    losses = importance_sampling_loss(
        torch.ones(len(counts), 1, dtype=torch.float64),
        leaf[:1].expand(len(counts), 1),
        leaf.expand(len(counts), 3)[..., None],
        sampled_log_q=(size * q / counts.clamp(min=1)).log(),
        sampled_mask=counts > 0,
        temperature=1.0,
    )
    (gradient,) = torch.autograd.grad((losses * chances).sum(), [leaf])
    target = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    return gradient - (torch.softmax(scores, dim=0) - target)


def test_the_bias_of_importance_sampling_tends_to_what_its_formula_says() -> None:
    # -1/S * sum of p^2 / q * (f - mean of f), with f the indicator of each candidate.
    scores = torch.tensor([0.3, -0.4, 0.9], dtype=torch.float64)
    q = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    p = torch.softmax(scores, dim=0)
    limit = -(p.square() / q - p * (p.square() / q).sum())
    small, large = (
        (size * importance_sampling_bias(scores, q, size) - limit).norm() for size in (25, 100)
    )
    assert large < 0.03 * limit.norm()
    assert float(small / large) == pytest.approx(4, rel=0.25)  # the next term is one of 1 / S^2


def test_a_sample_in_proportion_to_q_is_worth_s_over_one_plus_chi_square() -> None:
    scores = torch.tensor([0.3, -0.4, 0.9, 0.1], dtype=torch.float64)
    counts = torch.tensor([8, 4, 2, 6])
    p, q = torch.softmax(scores, dim=0), counts / 20
    rows = torch.arange(C).repeat_interleave(counts)
    chi_square = ((p - q).square() / q).sum()
    actual = effective_sample_size((scores - q.log())[rows])
    assert_close(actual, 20 / (1 + chi_square))


def test_a_mixture_needs_the_sum_of_its_samplers_counts() -> None:
    # A union in exact proportion to its Q: 6, 3, 1, 2 of the first sampler and 3 of each of the
    # second. Corrected by the sum it gives the full gradient; by one sampler's Q, that of a model
    # whose weights are multiplied by (sum) / (that one).
    samplers: list[Sampler] = [
        WithReplacementSampler(PopularityProposal(np.array([6, 3, 1, 2]), alpha=1), num_sampled=12),
        WithReplacementSampler(UniformProposal(C), num_sampled=12),
    ]
    scores = torch.tensor([0.3, -0.4, 0.9, 0.1], dtype=torch.float64)
    rows = torch.arange(C).repeat_interleave(torch.tensor([9, 6, 4, 5]))
    request = DrawRequest(torch.tensor([0]))
    mixture_and_parts: list[Sampler] = [MixedSampler(samplers), *samplers]
    log_qs = [
        sampler.sample(request, make_generator(0)).log_expected_count(torch.arange(C))
        for sampler in mixture_and_parts
    ]
    for log_q in log_qs:
        leaf = scores.clone().requires_grad_()
        loss = importance_sampling_loss(
            torch.ones(1, 1, dtype=torch.float64),
            leaf[:1, None],
            leaf[rows, None],
            sampled_log_q=log_q[rows],
            temperature=1.0,
        )
        (gradient,) = torch.autograd.grad(loss.sum(), [leaf])
        target = torch.tensor([1.0, 0, 0, 0], dtype=torch.float64)
        assert_close(gradient, torch.softmax(scores + log_qs[0] - log_q, dim=0) - target)
    assert (log_qs[0] - log_qs[1]).std() > 0.2  # the two weights are not the same up to a constant
