"""Each loss over a sample, as training calls it, against sums term by term."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from recsys.sampling import DrawRequest, Sample
from recsys.training import SampledLoss, SampledObjective, sampled_losses

SCORES = torch.tensor([[0.5, -1.0, 0.2, 1.5, -0.5], [-1.0, 2.0, -2.0, 0.3, 1.0]])
POSITIVES = [2, 1]
DRAWN = [1, 2, 2, 4, 0, 2]
COUNTS = [0.5, 1.0, 2.5, 0.75, 1.25]  # expected in a sample of six


class Fixed:
    """A sampler that draws the same rows every time, for the batch or each query."""

    def __init__(self, *, by_query: bool) -> None:
        self._by_query = by_query

    def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:
        log_q = torch.tensor(COUNTS, dtype=torch.float64).log()
        rows = torch.tensor(DRAWN)
        rows = rows.expand(len(request.positive_rows), -1) if self._by_query else rows
        return Sample(rows, lambda some: log_q[some], sum(COUNTS))

    def update(self, positive_rows: Tensor, positive_embeddings: Tensor) -> None:
        """Learn nothing."""

    def state_dict(self) -> dict[str, Tensor]:
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take nothing."""


Slow = Callable[[float, float, list[tuple[float, float]], list[tuple[float, float]]], float]


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def standard(s: float, q: float, left: list[Any], _: list[Any]) -> float:
    return math.log(math.exp(s) / q + sum(math.exp(x) / y for x, y in left)) - s + math.log(q)


def uncorrected(s: float, q: float, left: list[Any], _: list[Any]) -> float:
    return math.log(math.exp(s) + sum(math.exp(x) for x, _ in left)) - s


def refined(s: float, q: float, left: list[Any], _: list[Any]) -> float:
    # Q' = Q / (1 - Q of the positive), of one draw
    rest = 1 - q / sum(COUNTS)
    weights: list[float] = [math.exp(x) * rest / (y / sum(COUNTS)) for x, y in left]
    share = math.exp(s) / (math.exp(s) + sum(weights) / len(weights))
    return (1 - share) * (math.log(sum(weights)) - s)


def negative_sampling(s: float, q: float, _: list[Any], drawn: list[Any]) -> float:
    return softplus(-s) + sum(softplus(x) for x, _ in drawn)


def noise_contrastive(s: float, q: float, _: list[Any], drawn: list[Any]) -> float:
    noise = sum(softplus(x - math.log(y)) for x, y in drawn)
    return softplus(math.log(q) - s) + noise


def sampled_logistic(s: float, q: float, left: list[Any], _: list[Any]) -> float:
    return softplus(math.log(q) - s) + sum(softplus(x - math.log(y)) for x, y in left)


def bpr(s: float, q: float, left: list[Any], _: list[Any]) -> float:
    return sum(softplus(x - s) for x, _ in left) / len(left)


def standard_with_hits(s: float, q: float, _: list[Any], drawn: list[Any]) -> float:
    return standard(s, q, drawn, drawn)


def uncorrected_with_hits(s: float, q: float, _: list[Any], drawn: list[Any]) -> float:
    return uncorrected(s, q, drawn, drawn)


LOSSES: list[tuple[SampledLoss, Slow]] = [
    (partial(sampled_losses.standard_softmax, remove_accidental_hits=True), standard),
    (partial(sampled_losses.standard_softmax, remove_accidental_hits=False), standard_with_hits),
    (partial(sampled_losses.uncorrected_softmax, remove_accidental_hits=True), uncorrected),
    (
        partial(sampled_losses.uncorrected_softmax, remove_accidental_hits=False),
        uncorrected_with_hits,
    ),
    (sampled_losses.refined_softmax, refined),
    (sampled_losses.negative_sampling, negative_sampling),
    (sampled_losses.noise_contrastive, noise_contrastive),
    (sampled_losses.sampled_logistic, sampled_logistic),
    (sampled_losses.bpr, bpr),
]


@pytest.mark.parametrize("by_query", [False, True])
@pytest.mark.parametrize(("loss", "slow"), LOSSES, ids=[slow.__name__ for _, slow in LOSSES])
def test_the_loss_is_that_of_the_draws_and_their_expected_counts(
    unit_items: Any, loss: SampledLoss, slow: Slow, by_query: bool
) -> None:
    objective = SampledObjective(Fixed(by_query=by_query), unit_items.features, loss)
    losses = unit_items.losses(objective, SCORES, unit_items.batch(POSITIVES))
    for row, positive in enumerate(POSITIVES):
        scores = SCORES[row].tolist()
        drawn = [(scores[item], COUNTS[item]) for item in DRAWN]
        left = [(scores[item], COUNTS[item]) for item in DRAWN if item != positive]
        expected = slow(scores[positive], COUNTS[positive], left, drawn)
        assert float(losses[row]) == pytest.approx(expected, rel=1e-5), row
