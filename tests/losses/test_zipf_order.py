"""How far each correction's gradient is off on a Zipf catalogue, on average and per positive.

The error of one example (a positive y ~ P and one draw) is its loss's gradient with respect to the
2,000 scores, less the full softmax's. Two means of it are taken, both with the expectation over
positives in full, by weighing each by its P:

- overall: the norm of the mean over positives and draws. This is what a training step with many
  examples at these scores would be pushed by, and what the name says, so it is the first.
- by positive: for each positive the mean over draws alone, and of its norm the root of the mean
  square over positives. Errors of different positives cannot cancel here.

Draws come in two independent halves. Half their difference measures the noise of the overall mean,
and the products of one with the other are squares that hold no noise on average.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest
import torch
from torch import Tensor

from recsys.losses import refined_softmax_loss, sampled_softmax_loss

NUM_CANDIDATES = 2_000
CORRECTIONS = ("refined", "standard", "none")


@dataclass(frozen=True)
class Catalogue:
    scores: Tensor  # [C]; the logits at temperature 1
    draw_probability: Tensor  # [C]

    def probability(self) -> Tensor:
        return self.scores.softmax(dim=0)


def make_catalogue(*, peaked: bool) -> Catalogue:
    """Give Zipf's Q, and scores log Q + noise of 0.3, or scores that know nothing of Q."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(NUM_CANDIDATES, generator=generator, dtype=torch.float64)
    q = 1 / torch.arange(1, NUM_CANDIDATES + 1, dtype=torch.float64)
    q = q / q.sum()
    return Catalogue(2 * noise if peaked else q.log() + 0.3 * noise, q)


def make_loss(correction: str, num_sampled: int) -> Callable[..., Tensor]:
    if correction == "refined":
        return partial(refined_softmax_loss, num_draws=num_sampled)
    if correction == "standard":
        return sampled_softmax_loss

    def uncorrected(*embeddings: Tensor, **arguments: object) -> Tensor:
        none = {"positive_log_q": None, "sampled_log_q": None}
        return sampled_softmax_loss(*embeddings, **{**arguments, **none})  # type: ignore[arg-type]

    return uncorrected


@dataclass(frozen=True)
class Examples:
    """Positives, each in proportion to its P but at least once, and a sample for each."""

    positives: Tensor  # [N]
    sampled: Tensor  # [N, S]


def make_examples(
    catalogue: Catalogue, num_sampled: int, num_examples: int, generator: torch.Generator
) -> Examples:
    repeats = (num_examples * catalogue.probability()).ceil().long()
    positives = torch.arange(NUM_CANDIDATES).repeat_interleave(repeats)
    shape = (len(positives), num_sampled)
    # Each row's uniforms are independent, but a column's are spread evenly over the rows (a Latin
    # hypercube): every row is a sample as it should be, and the mean over rows has less noise.
    ranks = torch.rand(shape, generator=generator).argsort(dim=0)
    uniforms = (ranks + torch.rand(shape, generator=generator, dtype=torch.float64)) / len(
        positives
    )
    sampled = torch.searchsorted(catalogue.draw_probability.cumsum(dim=0), uniforms)
    # The last sum may be a rounding below 1.
    return Examples(positives, sampled.clamp(max=NUM_CANDIDATES - 1))


def mean_gradients(catalogue: Catalogue, examples: Examples, correction: str) -> Tensor:
    """Give the mean over draws of each positive's gradient: [C positives, C scores]."""
    positives, sampled = examples.positives, examples.sampled
    log_q = (sampled.shape[1] * catalogue.draw_probability).log()
    # With a query of length 1 and one dimension, embeddings are scores.
    of_positives = catalogue.scores[positives][:, None].requires_grad_()
    of_sampled = catalogue.scores[sampled][..., None].requires_grad_()
    losses = make_loss(correction, sampled.shape[1])(
        torch.ones(len(positives), 1, dtype=torch.float64),
        of_positives,
        of_sampled,
        positive_rows=positives,
        sampled_rows=sampled,
        positive_log_q=log_q[positives],
        sampled_log_q=log_q[sampled],
        temperature=1.0,
    )
    own, others = torch.autograd.grad(losses.sum(), [of_positives, of_sampled])
    sums = torch.zeros(NUM_CANDIDATES**2, dtype=torch.float64)
    places = positives[:, None] * NUM_CANDIDATES
    sums.index_add_(0, (places + sampled).flatten(), others.flatten())
    sums.index_add_(0, positives * (NUM_CANDIDATES + 1), own.flatten())
    counts = positives.bincount(minlength=NUM_CANDIDATES)
    return sums.reshape(NUM_CANDIDATES, NUM_CANDIDATES) / counts[:, None]


@dataclass(frozen=True)
class GradientError:
    overall: float  # norm of the mean over positives and draws
    noise: float  # of `overall`, from the two halves
    by_positive_squared: float  # below 0 where the noise is larger than what it measures


def measure(catalogue: Catalogue, num_sampled: int, num_examples: int) -> dict[str, GradientError]:
    generator = torch.Generator().manual_seed(num_sampled)
    halves = [make_examples(catalogue, num_sampled, num_examples // 2, generator) for _ in range(2)]
    p = catalogue.probability()
    full = p - torch.eye(NUM_CANDIDATES, dtype=torch.float64)  # [positives, scores]
    errors = {}
    for correction in CORRECTIONS:
        first, second = (mean_gradients(catalogue, half, correction) - full for half in halves)
        errors[correction] = GradientError(
            float((p @ (first + second) / 2).norm()),
            float((p @ (first - second) / 2).norm()),
            float(p @ (first * second).sum(dim=1)),
        )
    return errors


def write_table(title: str, num_sampled: int, errors: dict[str, GradientError]) -> None:
    print(f"\n{title}, S = {num_sampled}: gradient error, overall (noise) | by positive")  # noqa: T201
    for correction, error in errors.items():
        by_positive = max(error.by_positive_squared, 0) ** 0.5
        print(f"  {correction:9} {error.overall:.5f} ({error.noise:.5f}) | {by_positive:.5f}")  # noqa: T201


@pytest.mark.parametrize(("num_sampled", "num_examples"), [(64, 20_000), (512, 4_000)])
def test_refined_is_ahead_of_standard_and_standard_of_none_in_the_trained_state(
    num_sampled: int, num_examples: int
) -> None:
    errors = measure(make_catalogue(peaked=False), num_sampled, num_examples)
    write_table("scores log Q + noise of 0.3", num_sampled, errors)
    refined, standard, none = (errors[correction] for correction in CORRECTIONS)
    assert max(error.noise for error in errors.values()) < standard.overall / 8
    assert 2 * refined.overall < standard.overall
    assert 2 * standard.overall < none.overall
    assert 4 * refined.by_positive_squared < standard.by_positive_squared
    assert 4 * standard.by_positive_squared < none.by_positive_squared


@pytest.mark.parametrize(("num_sampled", "num_examples"), [(64, 4_000), (512, 1_000)])
def test_the_order_may_change_where_scores_know_nothing_of_q(
    num_sampled: int, num_examples: int
) -> None:
    # Printed to be looked at: with few draws from an unsuitable Q, any of them may be ahead.
    errors = measure(make_catalogue(peaked=True), num_sampled, num_examples)
    write_table("scores of deviation 2, independent of Q", num_sampled, errors)
    assert all(error.overall < 2 for error in errors.values())
