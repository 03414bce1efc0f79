"""Statements of docs/theory.md about what is drawn how often."""

import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from recsys.foundations import make_generator
from recsys.sampling import (
    DrawRequest,
    ExactPopularity,
    InBatchSampler,
    IndependentSampler,
    LogUniformProposal,
    PopularityProposal,
    WithReplacementSampler,
)


def test_a_hundred_events_to_one_are_drawn_31_point_6_times_to_one() -> None:
    # 100^0.75 = 10^1.5 = 31.6228, of 32.6228 draws.
    proposal = PopularityProposal(np.array([100, 1]), alpha=0.75)
    frequent, rare = proposal.log_probability(torch.tensor([0, 1])).exp().tolist()
    assert frequent / rare == pytest.approx(31.6228, abs=1e-4)
    sampler = WithReplacementSampler(proposal, num_sampled=100_000)
    sample = sampler.sample(DrawRequest(torch.tensor([0])), make_generator(0))
    expected = sample.log_expected_count(torch.tensor([1])).exp().item()
    assert expected == pytest.approx(100_000 / 32.6228, rel=1e-5)
    # Binomial with a mean of 3065: the standard deviation is 55.
    assert abs(int((sample.rows == 1).sum()) - expected) < 4 * 55


def test_a_poisson_number_of_draws_without_repeats_tosses_a_coin_for_each_candidate() -> None:
    # Two samples merged are one of both rates: 1 - exp(-(a + b) p) = 1 - (1 - Q_a) (1 - Q_b).
    proposal = PopularityProposal(np.array([5, 1, 2]), alpha=1)
    request, everything = DrawRequest(torch.tensor([0])), torch.arange(3)
    three, four, seven = (
        IndependentSampler(proposal, num_sampled=size)
        .sample(request, make_generator(0))
        .log_expected_count(everything)
        .exp()
        for size in (3, 4, 7)
    )
    assert_close(seven, 1 - (1 - three) * (1 - four))


def test_counting_the_own_column_in_batch_adds_the_same_to_every_log_q() -> None:
    # B p for all columns, (B - 1) p for those of other queries: the softmax sees no difference.
    rates, rows = ExactPopularity(np.array([5, 1, 2])), torch.arange(3)
    sample = InBatchSampler(rates).sample(
        DrawRequest(torch.tensor([0, 2, 0, 0])), make_generator(0)
    )
    shift = sample.log_expected_count(rows) - rates.log_rate(rows, 3)
    assert_close(shift, torch.full((3,), math.log(4 / 3), dtype=torch.float64))


def test_the_log_uniform_follows_zipf_by_rank_whatever_the_counts_are() -> None:
    # Ranks 2, 0, 1: p = log((r + 2) / (r + 1)) / log 4, about 1 / ((r + 1.5) log 4).
    p = LogUniformProposal(np.array([3, 900, 40])).log_probability(torch.arange(3)).exp()
    assert p.tolist() == pytest.approx([math.log(4 / 3) / math.log(4), 0.5, 0.29248], abs=1e-5)
    assert_close(p, 1 / (torch.tensor([3.5, 1.5, 2.5]).double() * math.log(4)), rtol=0.05, atol=0)
