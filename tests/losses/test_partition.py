"""The estimate of Z: its mean over every sample is Z itself, and its error is as stated."""

import itertools
import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recsys.losses import partition_estimate

SCORES = torch.tensor([1.0, -0.5, 0.25, 2.0], dtype=torch.float64)
P = torch.tensor([0.1, 0.4, 0.3, 0.2], dtype=torch.float64)  # chance of one draw
Z = SCORES.exp().sum()
NEVER = float("-inf")


def all_draws(num_draws: int) -> tuple[Tensor, Tensor]:
    """Give every sequence of draws with replacement, [N, S], and its chance, [N]."""
    rows = torch.tensor(list(itertools.product(range(4), repeat=num_draws)))
    return rows, P[rows].prod(dim=1)


def test_is_unbiased_with_replacement_and_states_its_variance_without_bias() -> None:
    rows, chances = all_draws(3)
    estimate = partition_estimate((SCORES - (3 * P).log())[rows])
    z = estimate.log_z.exp()
    assert_close((chances * z).sum(), Z, rtol=1e-13, atol=0)
    variance = (chances * (z - Z).square()).sum()
    stated = (chances * (estimate.standard_error * z).square()).sum()
    assert_close(stated, variance, rtol=1e-12, atol=0)


def test_is_unbiased_where_repeats_are_dropped() -> None:
    rows, chances = all_draws(3)
    expected_count = 1 - (1 - P) ** 3
    repeated = torch.zeros_like(rows, dtype=torch.bool)
    repeated[:, 1] = rows[:, 1] == rows[:, 0]
    repeated[:, 2] = (rows[:, 2] == rows[:, 0]) | (rows[:, 2] == rows[:, 1])
    log_weights = (SCORES - expected_count.log())[rows].masked_fill(repeated, NEVER)
    z = partition_estimate(log_weights).log_z.exp()
    assert_close((chances * z).sum(), Z, rtol=1e-13, atol=0)


def test_is_unbiased_where_each_candidate_enters_on_its_own_coin() -> None:
    entered = torch.tensor(list(itertools.product([False, True], repeat=4)))  # [16, 4]
    q = torch.tensor([0.9, 0.2, 0.5, 0.7], dtype=torch.float64)
    chances = torch.where(entered, q, 1 - q).prod(dim=1)
    log_weights = (SCORES - q.log()).expand(16, 4).masked_fill(~entered, NEVER)
    estimate = partition_estimate(log_weights)
    assert estimate.log_z[0] == NEVER  # nobody entered
    assert_close((chances * estimate.log_z.exp()).sum(), Z, rtol=1e-13, atol=0)


def all_counts(size: int) -> tuple[Tensor, Tensor]:
    """Give the counts of three candidates in `size` draws, [N, 3], and their chances, [N]."""
    counts = torch.tensor(
        [(a, b, size - a - b) for a in range(size + 1) for b in range(size + 1 - a)]
    )
    q = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    log_ways = math.lgamma(size + 1) - torch.lgamma(counts.double() + 1).sum(dim=1)
    return counts, (log_ways + (counts * q.log()).sum(dim=1)).exp()


@pytest.mark.parametrize("size", [32, 128])
def test_its_log_is_too_low_by_half_the_squared_error(size: int) -> None:
    counts, chances = all_counts(size)
    log_q = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64).mul(size).log()
    rows = torch.arange(3).repeat(len(counts)).repeat_interleave(counts.flatten())
    estimate = partition_estimate((SCORES[:3] - log_q)[rows.reshape(len(counts), size)])
    error = estimate.log_z - SCORES[:3].logsumexp(dim=0)
    spread = (chances * error.square()).sum().sqrt()
    # The next term of the expansion in 1 / S is smaller by about 1 / S.
    assert_close((chances * error).sum(), -spread.square() / 2, rtol=2 / size, atol=0)
    assert_close((chances * estimate.standard_error).sum(), spread, rtol=2 / size, atol=0)


def test_the_ideal_proposal_has_no_error() -> None:
    log_q = SCORES.log_softmax(dim=0) + math.log(5)
    estimate = partition_estimate((SCORES - log_q)[torch.tensor([3, 3, 0, 1, 2])])
    assert_close(estimate.log_z, Z.log(), rtol=1e-14, atol=0)
    assert estimate.standard_error < 1e-7  # the square root of the last digit


def test_equals_the_value_worked_by_hand() -> None:
    # exp(s) / (S p) = 1 and 3: Z_hat = 4 from S p exp(s) / (S p) of 2 and 6, whose mean is 4 and
    # whose standard deviation is sqrt(8): standard error sqrt(8 / 2) = 2, which is 0.5 of Z_hat.
    estimate = partition_estimate(torch.tensor([[1.0, 3.0]]).log())
    assert_close(estimate.log_z, torch.tensor([4.0]).log())
    assert_close(estimate.standard_error, torch.tensor([0.5]))


def test_does_not_overflow_and_knows_nothing_from_one_draw_or_none() -> None:
    large = partition_estimate(torch.tensor([[1000.0, 1000.0]]))
    assert_close(large.log_z, torch.tensor([1000 + math.log(2)]))
    one = partition_estimate(torch.tensor([2.0]))
    assert one.log_z == 2
    assert one.standard_error.isnan()
    none = partition_estimate(torch.full((1, 3), NEVER))
    assert none.log_z == NEVER
    assert none.standard_error == float("inf")
