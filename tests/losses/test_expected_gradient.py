"""What the sampled softmax's gradient is on average, by enumeration and in large draws."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import make_generator
from recsys.losses import full_softmax_loss, sampled_softmax_loss
from recsys.sampling import (
    DrawRequest,
    ExactPopularity,
    InBatchSampler,
    MixedSampler,
    PopularityProposal,
    Proposal,
    Sampler,
    UniformProposal,
    WithReplacementSampler,
)

COUNTS = np.array([60, 1, 20, 5, 9, 30])


def make_scores(seed: int = 0) -> Tensor:
    """Scores of six candidates for one query; they are the logits at temperature 1."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(len(COUNTS), generator=generator, dtype=torch.float64)


def score_gradient(
    scores: Tensor,
    positive: int,
    rows: Tensor,
    log_q: Tensor,
    *,
    own_columns: Tensor | None = None,
    remove_hits: bool = True,
) -> Tensor:
    """Give the sampled loss's gradient with respect to the catalogue's scores: [C].

    With a query of length 1 and one dimension, embeddings are scores.
    """
    leaf = scores.clone().requires_grad_()
    losses = sampled_softmax_loss(
        torch.ones(1, 1, dtype=torch.float64),
        leaf[positive].reshape(1, 1),
        leaf[rows][:, None],
        positive_rows=torch.tensor([positive]),
        sampled_rows=rows,
        positive_log_q=log_q[positive : positive + 1],
        sampled_log_q=log_q[rows],
        temperature=1.0,
        own_columns=own_columns,
        remove_accidental_hits=remove_hits,
    )
    return torch.autograd.grad(losses.sum(), [leaf])[0]


def full_gradient(scores: Tensor, positive: int) -> Tensor:
    leaf = scores.clone().requires_grad_()
    losses = full_softmax_loss(
        torch.ones(1, 1, dtype=torch.float64),
        leaf[:, None],
        positive_rows=torch.tensor([positive]),
        temperature=1.0,
    )
    return torch.autograd.grad(losses.sum(), [leaf])[0]


def expected_gradient_of_coins(
    scores: Tensor, probability: Tensor, chances: Tensor, log_q: Tensor
) -> Tensor:
    """Give the mean gradient over y ~ P and over every sample: [4], exact.

    Each candidate enters the sample on its own coin; the mask tells which have.
    """
    entered = torch.tensor([*itertools.product([False, True], repeat=4)]).repeat(4, 1)  # [64, 4]
    positives = torch.arange(4).repeat_interleave(16)
    weights = torch.where(entered, chances, 1 - chances).prod(dim=1) * probability[positives]
    leaf = scores.clone().requires_grad_()
    losses = sampled_softmax_loss(
        torch.ones(64, 1, dtype=torch.float64),
        leaf[positives][:, None],
        leaf[:, None],
        positive_rows=positives,
        sampled_rows=torch.arange(4),
        positive_log_q=log_q[positives],
        sampled_log_q=log_q,
        temperature=1.0,
        sampled_mask=entered,
    )
    return torch.autograd.grad((losses * weights).sum(), [leaf])[0]


four_shares = st.lists(st.floats(0.01, 1), min_size=4, max_size=4)


@given(shares=four_shares, chances=four_shares, constant=st.floats(-5, 5))
def test_log_p_and_any_constant_is_the_optimum_with_independent_inclusion(
    shares: list[float], chances: list[float], constant: float
) -> None:
    p, q = (torch.tensor(one, dtype=torch.float64) for one in (shares, chances))
    p = p / p.sum()
    actual = expected_gradient_of_coins(p.log() + constant, p, q, q.log())
    assert_close(actual, torch.zeros_like(actual), rtol=0, atol=1e-14)


def test_log_p_is_the_optimum_under_the_correction_and_only_then() -> None:
    p = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)
    q = torch.tensor([0.9, 0.2, 0.5, 0.7], dtype=torch.float64)
    assert expected_gradient_of_coins(p.log() + 3, p, q, q.log()).norm() < 1e-14
    assert expected_gradient_of_coins(p.log(), p, q, torch.zeros_like(q)).norm() > 0.05
    assert expected_gradient_of_coins(1.5 * p.log(), p, q, q.log()).norm() > 0.05


def expected_gradient(scores: Tensor, size: int, *, remove_hits: bool) -> Tensor:
    """Give the mean over every sample of `size` draws from three candidates: [3], exact.

    The positive is candidate 2. Samples with the same counts give the same loss, so each vector of
    counts is one row, weighed by its multinomial chance.
    """
    q = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    counts = torch.tensor(
        [(a, b, size - a - b) for a in range(size + 1) for b in range(size + 1 - a)]
    )  # [N, 3]
    log_ways = math.lgamma(size + 1) - torch.lgamma(counts.double() + 1).sum(dim=1)
    chances = (log_ways + (counts * q.log()).sum(dim=1)).exp()  # [N]
    rows = torch.arange(3).repeat(len(counts)).repeat_interleave(counts.flatten())
    rows, log_q = rows.reshape(len(counts), size), (size * q).log()
    leaf = scores.clone().requires_grad_()
    losses = sampled_softmax_loss(
        torch.ones(len(counts), 1, dtype=torch.float64),
        leaf[2].expand(len(counts), 1),
        leaf[rows][..., None],
        positive_rows=torch.full((len(counts),), 2),
        sampled_rows=rows,
        positive_log_q=log_q[2].expand(len(counts)),
        sampled_log_q=log_q[rows],
        temperature=1.0,
        remove_accidental_hits=remove_hits,
    )
    return torch.autograd.grad((losses * chances).sum(), [leaf])[0]


@pytest.mark.parametrize("remove_hits", [False, True])
def test_bias_falls_as_one_over_the_sample_size(remove_hits: bool) -> None:
    # With hits kept, the positive's copies put its own term into the denominator, and the limit is
    # the full gradient. With hits removed its term vanishes as 1 / Q: the denominator loses
    # P(positive), and the limit is the full gradient / (1 - P(positive)).
    scores = torch.tensor([0.3, -0.4, 0.6], dtype=torch.float64)
    limit = full_gradient(scores, 2)
    if remove_hits:
        limit = limit / (1 - torch.softmax(scores, dim=0)[2])
    small, large = (
        (expected_gradient(scores, size, remove_hits=remove_hits) - limit).norm().item()
        for size in (16, 64)
    )
    assert small / large == pytest.approx(4, rel=0.25)
    assert large < 0.1 * limit.norm()


def large_draw_error(sampler: Sampler, corrected_as: Sampler | None = None) -> float:
    """Give the relative error of one large draw's gradient, accidental hits kept.

    Corrected by the draw's own Q or by that of another sampler.
    """
    generator, scores = make_generator(0, "gradient"), make_scores(seed=1)
    counts = torch.from_numpy(COUNTS).double()
    others = torch.multinomial(counts, 20_000, replacement=True, generator=generator)
    request = DrawRequest(torch.cat([torch.tensor([2]), others]))
    sample = sampler.sample(request, generator)
    stated = sample if corrected_as is None else corrected_as.sample(request, generator)
    log_q = stated.log_expected_count(torch.arange(len(COUNTS)))
    own = None if sample.own_columns is None else sample.own_columns[:1]
    actual = score_gradient(scores, 2, sample.rows, log_q, own_columns=own, remove_hits=False)
    expected = full_gradient(scores, 2)
    return float((actual - expected).norm() / expected.norm())


def make_samplers() -> list[Sampler]:
    proposals: list[Proposal] = [
        UniformProposal(len(COUNTS)),
        PopularityProposal(COUNTS, alpha=0.75),
        PopularityProposal(COUNTS, alpha=-0.5),
    ]
    drawn = [WithReplacementSampler(proposal, num_sampled=20_000) for proposal in proposals]
    return [*drawn, InBatchSampler(ExactPopularity(COUNTS))]


def test_a_large_draw_of_every_sampler_gives_the_full_gradient() -> None:
    # One draw's noise is about 1 / sqrt(20,000 * the rarest candidate's chance of 0.008): 0.08 for
    # the rarest term alone, far less in the norm.
    for sampler in [*make_samplers(), MixedSampler(make_samplers())]:
        assert large_draw_error(sampler) < 0.03


def test_a_mixture_corrected_by_one_samplers_q_stays_biased() -> None:
    mixed = MixedSampler(make_samplers())
    for sampler in make_samplers():
        assert large_draw_error(mixed, corrected_as=sampler) > 0.1
