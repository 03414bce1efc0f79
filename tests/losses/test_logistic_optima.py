"""What the logistic losses are trained towards, by enumeration of every sample and positive."""

import itertools
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

P = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)
DRAW = torch.tensor([0.1, 0.5, 0.15, 0.25], dtype=torch.float64)  # one draw's probabilities
NUM_DRAWS = 3
LOG_Q = (NUM_DRAWS * DRAW).log()


def expected_loss(loss: Callable[..., Tensor], scores: Tensor, log_q: Tensor | None) -> Tensor:
    """Give the mean loss at [C] scores over y ~ P and over every sample of three draws, exactly.

    With a query of length 1 and one dimension, embeddings are scores.
    """
    everything = [*itertools.product(range(4), repeat=1 + NUM_DRAWS)]
    rows = torch.tensor(everything)  # [N, 1 + S]
    positives, sampled = rows[:, 0], rows[:, 1:]
    chances = P[positives] * DRAW[sampled].prod(dim=1)  # [N]
    correction: dict[str, Any] = {}
    if log_q is not None:
        correction = {"positive_log_q": log_q[positives], "sampled_log_q": log_q[sampled]}
    losses = loss(
        torch.ones(len(rows), 1, dtype=torch.float64),
        scores[positives][:, None],
        scores[sampled][..., None],
        positive_rows=positives,
        sampled_rows=sampled,
        temperature=1.0,
        **correction,
    )
    return (losses * chances).sum()


def expected_gradient(
    loss: Callable[..., Tensor], scores: Tensor, log_q: Tensor | None = LOG_Q
) -> Tensor:
    leaf = scores.clone().requires_grad_()
    return torch.autograd.grad(expected_loss(loss, leaf, log_q), [leaf])[0]


def minimise(compute: Callable[[Tensor], Tensor]) -> Tensor:
    scores = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [scores],
        max_iter=100,
        tolerance_grad=1e-12,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )

    def closure() -> float:
        optimiser.zero_grad()
        value = compute(scores)
        torch.autograd.backward(value)
        return value.item()

    optimiser.step(closure)
    return scores.detach()


ZERO = torch.zeros(4, dtype=torch.float64)


def test_noise_contrastive_estimation_is_trained_towards_log_p() -> None:
    assert_close(expected_gradient(noise_contrastive_loss, P.log()), ZERO, rtol=0, atol=1e-14)
    trained = minimise(lambda scores: expected_loss(noise_contrastive_loss, scores, LOG_Q))
    assert_close(trained, P.log(), rtol=0, atol=1e-6)


def test_noise_contrastive_scores_normalise_themselves() -> None:
    # A softmax would not care for the constant; here it is off the optimum, and so is the Q of one
    # draw in the place of the expected count.
    assert expected_gradient(noise_contrastive_loss, P.log() + 1).norm() > 0.05
    share = expected_gradient(noise_contrastive_loss, P.log(), DRAW.log())
    assert share.norm() > 0.05


def test_negative_sampling_is_trained_towards_log_p_over_q() -> None:
    optimum = P.log() - LOG_Q
    gradient = expected_gradient(negative_sampling_loss, optimum, None)
    assert_close(gradient, ZERO, rtol=0, atol=1e-14)
    trained = minimise(lambda scores: expected_loss(negative_sampling_loss, scores, None))
    assert_close(trained, optimum, rtol=0, atol=1e-6)


def test_sampled_logistic_is_trained_towards_the_log_odds() -> None:
    optimum = P.logit()
    gradient = expected_gradient(sampled_logistic_loss, optimum)
    assert_close(gradient, ZERO, rtol=0, atol=1e-14)
    trained = minimise(lambda scores: expected_loss(sampled_logistic_loss, scores, LOG_Q))
    assert_close(trained, optimum, rtol=0, atol=1e-6)


def test_removing_hits_is_what_sets_the_two_apart() -> None:
    assert expected_gradient(sampled_logistic_loss, P.log()).norm() > 0.05
    assert expected_gradient(noise_contrastive_loss, P.logit()).norm() > 0.05


def test_full_logistic_is_trained_towards_the_log_odds() -> None:
    def compute(scores: Tensor) -> Tensor:
        losses = full_logistic_loss(
            torch.ones(4, 1, dtype=torch.float64),
            scores[:, None],
            positive_rows=torch.arange(4),
            temperature=1.0,
        )
        return (losses * P).sum()

    leaf = P.logit().requires_grad_()
    assert_close(torch.autograd.grad(compute(leaf), [leaf])[0], ZERO, rtol=0, atol=1e-14)
    assert_close(minimise(compute), P.logit(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("loss", [noise_contrastive_loss, sampled_logistic_loss])
def test_the_optimum_does_not_depend_on_how_the_sample_is_drawn(
    loss: Callable[..., Tensor],
) -> None:
    # Each candidate enters on its own coin: Q is the chance of that, and nothing else changes.
    coins = torch.tensor([0.9, 0.2, 0.5, 0.7], dtype=torch.float64)
    optimum = P.log() if loss is noise_contrastive_loss else P.logit()
    leaf, total = optimum.requires_grad_(), torch.zeros((), dtype=torch.float64)
    for entered in itertools.product([False, True], repeat=4):
        mask = torch.tensor(entered)
        chance = torch.where(mask, coins, 1 - coins).prod()
        losses = loss(
            torch.ones(4, 1, dtype=torch.float64),
            leaf[:, None],
            leaf[mask][:, None],
            positive_rows=torch.arange(4),
            sampled_rows=torch.arange(4)[mask],
            positive_log_q=coins.log(),
            sampled_log_q=coins[mask].log(),
            temperature=1.0,
        )
        total = total + chance * (losses * P).sum()
    assert_close(torch.autograd.grad(total, [leaf])[0], ZERO, rtol=0, atol=1e-14)
