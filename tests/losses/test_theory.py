"""Statements of docs/theory.md, by enumeration of every sample and every target.

One query over four candidates. With a query of length 1 and embeddings of one dimension,
embeddings are scores. Expectations are exact sums, so that tolerances are those of rounding.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import make_generator
from recsys.losses import (
    bpr_loss,
    effective_sample_size,
    full_softmax_loss,
    importance_sampling_loss,
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


def ways_of_draws() -> Ways:
    """Three draws with replacement, repeats kept; Q is 3 q."""
    size = 3
    q = torch.tensor([0.5, 0.2, 0.05, 0.25], dtype=torch.float64)
    rows = torch.tensor(list(itertools.product(range(C), repeat=size))).repeat(C, 1)
    targets = torch.arange(C).repeat_interleave(C**size)
    chances = P[targets] * q[rows].prod(dim=1)
    mask = torch.ones_like(rows, dtype=torch.bool)
    return Ways(chances, targets, rows, mask, (size * q).log())


def losses_of(
    loss: Callable[..., Tensor],
    ways: Ways,
    scores: Tensor,
    log_q: Tensor | None,
    temperature: float,
) -> Tensor:
    """Give the loss of every way: [N]."""
    return loss(
        torch.ones(len(ways.targets), 1, dtype=torch.float64),
        scores[ways.targets, None],
        scores[ways.rows][..., None],
        positive_rows=ways.targets,
        sampled_rows=ways.rows,
        sampled_mask=ways.mask,
        positive_log_q=None if log_q is None else log_q[ways.targets],
        sampled_log_q=None if log_q is None else log_q[ways.rows],
        temperature=temperature,
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
    ways = ways_of_coins()
    losses = losses_of(sampled_softmax_loss, ways, P.log() + 3, ways.log_q, 1.0)
    sets = ways.mask | torch.nn.functional.one_hot(ways.targets, C).bool()
    keys = (sets * 2 ** torch.arange(C)).sum(dim=1)
    of_set = torch.zeros(2**C, dtype=torch.float64).index_add(0, keys, ways.chances)
    same = (keys[:, None] == keys) & (ways.targets[:, None] == ways.targets)
    of_set_and_target = torch.where(same, ways.chances, 0).sum(dim=1)
    assert_close(torch.exp(-losses), of_set_and_target / of_set[keys], rtol=1e-12, atol=0)


def test_with_replacement_log_p_is_the_optimum_where_hits_stay() -> None:
    ways = ways_of_draws()
    assert_zero(mean_gradient(hits_kept_softmax_loss, ways, P.log() + 3, ways.log_q))
    assert mean_gradient(sampled_softmax_loss, ways, P.log() + 3, ways.log_q).norm() > 0.005


def test_without_correction_the_optimum_is_the_log_of_p_over_q() -> None:
    ways = ways_of_coins()
    assert_zero(mean_gradient(sampled_softmax_loss, ways, P.log() - ways.log_q, None))
    assert mean_gradient(sampled_softmax_loss, ways, P.log(), None).norm() > 0.05


def test_log_q_divided_by_the_temperature_moves_the_optimum_by_a_power_of_q() -> None:
    # (s - log Q) / tau = log P - log Q + K is s / tau = log P + (1 / tau - 1) log Q + K.
    ways, temperature = ways_of_coins(), 0.25
    wrong = ways.log_q / temperature
    right_scores = temperature * (P.log() + 3)
    wrong_scores = temperature * (P.log() + 3 * ways.log_q)
    gradient = partial(mean_gradient, sampled_softmax_loss, ways, temperature=temperature)
    assert_zero(gradient(right_scores, ways.log_q))
    assert_zero(gradient(wrong_scores, wrong))
    assert gradient(right_scores, wrong).norm() > 0.05


def test_bpr_over_several_draws_is_off_by_what_the_removal_of_hits_leaves() -> None:
    # Of 3 draws without those of the target a, what is left (if anything) is b in the mean share
    # q(b) / (1 - q(a)), and something is left with chance 1 - q(a)^3.
    def bpr(*embeddings: Tensor, **arguments: Any) -> Tensor:
        kept = {k: v for k, v in arguments.items() if not k.endswith("log_q")}
        return bpr_loss(*embeddings, **kept)

    ways = ways_of_draws()
    q = ways.log_q.exp() / 3
    scores = P.log() - q.log() + ((1 - q**3) / (1 - q)).log()
    assert_zero(mean_gradient(bpr, ways, scores, None))


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
