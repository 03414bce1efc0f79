"""The Monte-Carlo gradient, and exact importance weights: their means and variances are exact."""

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError, ShapeError
from recsys.losses import exact_importance_weights, full_softmax_loss, monte_carlo_loss

SCORES = torch.tensor([0.3, -0.4, 1.1], dtype=torch.float64)
PROPOSAL = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
P = SCORES.softmax(dim=0)
FULL = P - torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)  # the positive is candidate 2


def make_inputs(*, batch: int = 3, sampled: int = 5, seed: int = 0) -> dict[str, Any]:
    rng = torch.Generator().manual_seed(seed)
    return {
        "query_embeddings": torch.randn(batch, 4, generator=rng),
        "positive_embeddings": torch.randn(batch, 4, generator=rng),
        "sampled_embeddings": torch.randn(sampled, 4, generator=rng),
        "temperature": 0.5,
    }


def gradients(rows: Tensor, sampled_weights: Tensor | None = None) -> Tensor:
    """Give the gradient of each sample [N, S] of three candidates: [N, 3]."""
    count = len(rows)
    leaf = SCORES.repeat(count, 1).requires_grad_()
    losses = monte_carlo_loss(
        torch.ones(count, 1, dtype=torch.float64),
        leaf[:, 2:],
        leaf.gather(1, rows)[..., None],
        temperature=1.0,
        sampled_weights=sampled_weights,
    )
    return torch.autograd.grad(losses.sum(), [leaf])[0]


def all_draws(num_draws: int, chances: Tensor) -> tuple[Tensor, Tensor]:
    """Give every sequence of draws, [N, S], and its chance, [N]."""
    rows = torch.tensor(list(itertools.product(range(3), repeat=num_draws)))
    return rows, chances[rows].prod(dim=1)


def mean_and_error(samples: Tensor, chances: Tensor) -> tuple[Tensor, Tensor]:
    """Give the mean gradient, and the mean squared error against the full one."""
    mean = (chances[:, None] * samples).sum(dim=0)
    return mean, (chances * (samples - FULL).square().sum(dim=1)).sum()


@pytest.mark.parametrize("size", [1, 2, 6])
def test_draws_from_the_model_are_unbiased_and_their_error_falls_as_stated(size: int) -> None:
    # S independent one-hot draws: the mean squared error is (1 - sum P^2) / S.
    rows, chances = all_draws(size, P)
    mean, error = mean_and_error(gradients(rows), chances)
    assert_close(mean, FULL, rtol=0, atol=1e-14)
    assert_close(error, (1 - P.square().sum()) / size, rtol=1e-12, atol=0)


@pytest.mark.parametrize("size", [1, 2, 6])
def test_exact_weights_are_unbiased_and_their_error_falls_as_stated(size: int) -> None:
    # S independent draws of P / p at one candidate: (sum P^2 / p - sum P^2) / S.
    rows, chances = all_draws(size, PROPOSAL)
    log_weights = (SCORES - (size * PROPOSAL).log())[rows]
    weights = exact_importance_weights(log_weights, SCORES.logsumexp(dim=0).expand(len(rows)))
    mean, error = mean_and_error(gradients(rows, weights), chances)
    assert_close(mean, FULL, rtol=0, atol=1e-14)
    expected = (P.square() / PROPOSAL).sum() - P.square().sum()
    assert_close(error, expected / size, rtol=1e-12, atol=0)


def test_exact_weights_are_unbiased_where_each_candidate_enters_on_its_own_coin() -> None:
    q = torch.tensor([0.9, 0.2, 0.5], dtype=torch.float64)
    entered = torch.tensor(list(itertools.product([False, True], repeat=3)))  # [8, 3]
    chances = torch.where(entered, q, 1 - q).prod(dim=1)
    log_weights = (SCORES - q.log()).expand(8, 3).masked_fill(~entered, float("-inf"))
    weights = exact_importance_weights(log_weights, SCORES.logsumexp(dim=0).expand(8))
    mean, _ = mean_and_error(gradients(torch.arange(3).expand(8, 3), weights), chances)
    assert_close(mean, FULL, rtol=0, atol=1e-14)


def test_exact_weights_of_draws_from_the_model_are_equal() -> None:
    draws = torch.tensor([2, 2, 0, 1])
    log_weights = SCORES[draws] - (P.log() + math.log(4))[draws]
    weights = exact_importance_weights(log_weights, SCORES.logsumexp(dim=0))
    assert_close(weights, torch.full((4,), 0.25, dtype=torch.float64))


def test_exact_weights_do_not_overflow_and_need_one_z_for_each_query() -> None:
    weights = exact_importance_weights(torch.tensor([[1000.0, 998.0]]), torch.tensor([1000.0]))
    assert_close(weights, torch.tensor([[1.0, math.exp(-2)]]))
    with pytest.raises(ShapeError, match=r"`log_partition` must have shape \[1\], got \[2\]"):
        exact_importance_weights(torch.zeros(1, 3), torch.zeros(2))


def test_the_models_own_probabilities_as_weights_give_the_full_softmax_exactly() -> None:
    inputs = make_inputs(sampled=7)
    rows = torch.tensor([4, 0, 4])
    catalogue, biases = inputs["sampled_embeddings"], torch.linspace(-1, 1, 7)
    leaves = {
        "query_embeddings": inputs["query_embeddings"].requires_grad_(),
        "catalogue_embeddings": catalogue.requires_grad_(),
        "catalogue_biases": biases.requires_grad_(),
    }
    full = full_softmax_loss(**leaves, positive_rows=rows, temperature=0.5)
    scores = (inputs["query_embeddings"] @ catalogue.T + biases) / 0.5
    surrogate = monte_carlo_loss(
        inputs["query_embeddings"],
        catalogue[rows],
        catalogue,
        temperature=0.5,
        sampled_weights=scores.softmax(dim=1),  # with a gradient, which must not flow
        positive_biases=biases[rows],
        sampled_biases=biases,
    )
    expected = torch.autograd.grad(full.sum(), list(leaves.values()))
    actual = torch.autograd.grad(surrogate.sum(), list(leaves.values()))
    assert_close(actual, expected)


def test_equals_the_value_worked_by_hand() -> None:
    # Scores (1 + 1) / 2 = 1, (0 + 2) / 2 = 1 and (-3 + 0) / 2 = -1.5: mean -0.25, less 1.
    actual = monte_carlo_loss(
        torch.ones(1, 1),
        torch.ones(1, 1),
        torch.tensor([[0.0], [-3.0]]),
        temperature=2.0,
        positive_biases=torch.ones(1),
        sampled_biases=torch.tensor([2.0, 0.0]),
    )
    assert_close(actual, torch.tensor([-1.25]))


@given(seed=st.integers(0, 2**16))
def test_equals_weighted_scores_summed_one_by_one(seed: int) -> None:
    inputs, rng = make_inputs(seed=seed), torch.Generator().manual_seed(seed)
    inputs |= {"positive_embeddings": torch.randn(3, 2, 4, generator=rng)}
    target = torch.tensor([[1.0, 0.0], [0.25, 0.75], [0.5, 0.5]])
    mask = torch.rand(3, 5, generator=rng) < 0.7
    mask[:, 0] = True
    weights, own = torch.rand(3, 5, generator=rng), torch.tensor([1, 1, 4])
    actual = monte_carlo_loss(
        **inputs,
        sampled_weights=weights,
        own_columns=own,
        sampled_mask=mask,
        positive_weights=target,
    )
    for b in range(3):
        query = inputs["query_embeddings"][b] / 0.5
        expected = sum(
            weights[b, j] * (query @ inputs["sampled_embeddings"][j])
            for j in range(5)
            if mask[b, j] and j != own[b]
        )
        positives = inputs["positive_embeddings"][b] @ query
        expected = target[b].sum() * expected - target[b] @ positives
        assert_close(actual[b], expected, rtol=1e-4, atol=1e-4)


def test_without_weights_what_is_left_counts_alike() -> None:
    inputs = make_inputs(sampled=4)
    mask = torch.tensor([[True, True, False, False]]).expand(3, 4)
    first_two = inputs | {"sampled_embeddings": inputs["sampled_embeddings"][:2]}
    assert_close(monte_carlo_loss(**inputs, sampled_mask=mask), monte_carlo_loss(**first_two))


def test_a_sample_for_each_query_equals_the_shared_one_when_all_are_the_same() -> None:
    inputs, weights = make_inputs(), torch.rand(3, 5, generator=torch.Generator().manual_seed(0))
    repeated = {"sampled_embeddings": inputs["sampled_embeddings"].expand(3, 5, 4)}
    assert_close(
        monte_carlo_loss(**inputs | repeated, sampled_weights=weights),
        monte_carlo_loss(**inputs, sampled_weights=weights),
    )


def test_is_zero_with_gradient_zero_where_nothing_is_left() -> None:
    inputs = make_inputs()
    leaves = {
        name: value.requires_grad_() for name, value in inputs.items() if name != "temperature"
    }
    mask = torch.tensor([[True], [False], [True]]).expand(3, 5)
    losses = monte_carlo_loss(**inputs | leaves, sampled_mask=mask)
    assert losses[1].item() == 0
    for gradient in torch.autograd.grad(losses[1], list(leaves.values())):
        assert torch.equal(gradient, torch.zeros_like(gradient))
    assert torch.equal(monte_carlo_loss(**make_inputs(sampled=0)), torch.zeros(3))


def test_computes_in_float32_from_half_precision_and_under_autocast() -> None:
    inputs = make_inputs(batch=8, sampled=40)
    names = ("query_embeddings", "positive_embeddings", "sampled_embeddings")
    rounded = {name: inputs[name].bfloat16() for name in names}
    exact = monte_carlo_loss(**inputs | {k: v.float() for k, v in rounded.items()})
    assert torch.equal(monte_carlo_loss(**inputs | rounded), exact)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = monte_carlo_loss(**inputs)
    assert torch.equal(inside, monte_carlo_loss(**inputs))


def test_names_the_argument_that_is_wrong() -> None:
    inputs = make_inputs()
    with pytest.raises(ShapeError, match=r"`sampled_weights` must have shape \[3, 5\], got \[5\]"):
        monte_carlo_loss(**inputs, sampled_weights=torch.ones(5))
    with pytest.raises(ShapeError, match=r"`sampled_embeddings` must have shape \[5, 4\]"):
        monte_carlo_loss(**inputs | {"sampled_embeddings": torch.ones(5, 3)})
    with pytest.raises(ShapeError, match=r"`sampled_embeddings` must have shape \[3, any, any\]"):
        monte_carlo_loss(**inputs | {"sampled_embeddings": torch.ones(2, 5, 4)})
    with pytest.raises(ArgumentError, match="`temperature` must be above 0"):
        monte_carlo_loss(**inputs | {"temperature": 0.0})
