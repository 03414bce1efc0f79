"""The logistic losses by hand, one beside the other, and at the ends of the scale."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recsys.losses import (
    full_logistic_loss,
    negative_sampling_loss,
    noise_contrastive_loss,
    sampled_logistic_loss,
)

LN_2, LN_3 = torch.tensor([2.0]).log().double(), torch.tensor([3.0]).log().double()


def make_inputs(positive_score: float, sampled_scores: list[float]) -> dict[str, Any]:
    """Give one query; candidate 0 is its positive, and the sample holds it last, as a hit."""
    return {
        "query_embeddings": torch.ones(1, 1, dtype=torch.float64),
        "positive_embeddings": torch.tensor([[positive_score]], dtype=torch.float64),
        "sampled_embeddings": torch.tensor(sampled_scores, dtype=torch.float64)[:, None],
        "positive_rows": torch.tensor([0]),
        "sampled_rows": torch.tensor([*range(1, len(sampled_scores)), 0]),
        "temperature": 1.0,
    }


def make_log_q(positive: float, sampled: list[float]) -> dict[str, Tensor]:
    return {
        "positive_log_q": torch.tensor([positive], dtype=torch.float64).log(),
        "sampled_log_q": torch.tensor(sampled, dtype=torch.float64).log(),
    }


def test_negative_sampling_equals_the_value_worked_by_hand() -> None:
    # Scores 0; the hit stays. -ln sigma(0) = ln 2 for the positive and for each of the two sampled.
    inputs = make_inputs(0.0, [0.0, 0.0])
    assert_close(negative_sampling_loss(**inputs), 3 * LN_2)


def test_noise_contrastive_equals_the_value_worked_by_hand() -> None:
    # Scores 0. u = 0 - ln 1 = 0 for the positive and for its hit, ln 2 each; u = 0 - ln(1/3) = ln 3
    # for the other, and -ln sigma(-ln 3) = ln(1 + 3) = 2 ln 2. In all 4 ln 2.
    inputs = make_inputs(0.0, [0.0, 0.0]) | make_log_q(1.0, [1 / 3, 1.0])
    assert_close(noise_contrastive_loss(**inputs), 4 * LN_2)


def test_sampled_logistic_equals_the_value_worked_by_hand() -> None:
    # The same without the hit: 3 ln 2.
    inputs = make_inputs(0.0, [0.0, 0.0]) | make_log_q(1.0, [1 / 3, 1.0])
    assert_close(sampled_logistic_loss(**inputs), 3 * LN_2)


def test_full_logistic_equals_the_value_worked_by_hand() -> None:
    # Scores 0 for the positive and ln 3 for the other: ln 2 + ln(1 + 3) = 3 ln 2.
    losses = full_logistic_loss(
        torch.ones(1, 1, dtype=torch.float64),
        torch.stack([LN_3, 0 * LN_3]),
        positive_rows=torch.tensor([1]),
        temperature=1.0,
    )
    assert_close(losses, 3 * LN_2)


def test_a_target_below_one_is_a_share_of_both_terms() -> None:
    # At u = ln 3: -ln sigma(u) = ln(4/3), -ln sigma(-u) = ln 4; a quarter and three quarters.
    inputs = make_inputs(float(LN_3), [0.0]) | {"sampled_mask": torch.tensor([[False]])}
    losses = negative_sampling_loss(**inputs, positive_target=0.25)
    assert_close(losses, 0.25 * (2 * LN_2 - LN_3) + 0.75 * 2 * LN_2)


def test_a_whole_catalogue_sampled_once_gives_the_full_logistic_loss() -> None:
    rng = torch.Generator().manual_seed(0)
    queries, catalogue = (torch.randn(n, 4, generator=rng, dtype=torch.float64) for n in (3, 6))
    rows = torch.tensor([5, 0, 2])
    losses = sampled_logistic_loss(
        queries,
        catalogue[rows],
        catalogue,
        positive_rows=rows,
        sampled_rows=torch.arange(6),
        positive_log_q=torch.zeros(3, dtype=torch.float64),
        sampled_log_q=torch.zeros(6, dtype=torch.float64),
        temperature=0.5,
    )
    full = full_logistic_loss(queries, catalogue, positive_rows=rows, temperature=0.5)
    assert_close(losses, full, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("score", [-500.0, -40.0, 40.0, 500.0])
def test_keeps_the_last_digits_of_far_scores(score: float) -> None:
    # log(1 + exp(-x)) is exp(-x) for a large x: far from 0, but nothing that may be dropped.
    inputs = make_inputs(score, [-score]) | {"positive_rows": torch.tensor([9])}
    leaf = inputs["positive_embeddings"].requires_grad_()
    losses = negative_sampling_loss(**inputs)
    expected = 2 * (torch.tensor([-score], dtype=torch.float64).exp() if score > 0 else -score)
    assert_close(losses, expected * torch.ones(1, dtype=torch.float64), rtol=1e-12, atol=0)
    (gradient,) = torch.autograd.grad(losses.sum(), [leaf])
    slope = -torch.tensor([[-score]], dtype=torch.float64).sigmoid()
    assert_close(gradient, slope, rtol=1e-12, atol=0)


@pytest.mark.parametrize("loss", [noise_contrastive_loss, sampled_logistic_loss])
def test_the_own_column_leaves_even_where_hits_stay(loss: Callable[..., Tensor]) -> None:
    inputs = make_inputs(0.0, [0.0, 0.0]) | make_log_q(1.0, [1.0, 1.0])
    assert_close(loss(**inputs, own_columns=torch.tensor([1])), 2 * LN_2)
