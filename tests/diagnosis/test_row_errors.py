"""Bias and noise row by row: exact where the sample is, and as theory has it elsewhere."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from recsys.diagnosis import (
    Estimator,
    FullSoftmax,
    RowErrors,
    Sampled,
    Subject,
    measure_rows,
    row_losses,
)
from recsys.foundations import ArgumentError, make_generator
from recsys.sampling import (
    DrawRequest,
    PerQuerySampler,
    PopularityProposal,
    Sample,
    WithReplacementSampler,
)

Measure = Callable[..., RowErrors]
Build = Callable[..., Estimator]


class Exhaustive:
    """A sampler that gives every candidate once: Q = 1."""

    def __init__(self, num_items: int) -> None:
        self._num_items = num_items

    def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:
        rows = torch.arange(self._num_items)
        return Sample(rows, lambda some: torch.zeros(some.shape, dtype=torch.float64), len(rows))

    def update(self, positive_rows: Tensor, positive_embeddings: Tensor) -> None: ...

    def state_dict(self) -> dict[str, Tensor]:
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None: ...


def relative(squares: np.ndarray, errors: RowErrors) -> np.ndarray:
    """Give sqrt(sum of squares / sum of the full gradient's squares) of the three gradients."""
    return np.asarray(np.sqrt(squares.sum(axis=0) / errors.full_squares.sum(axis=0)))


def test_the_full_softmax_has_neither_bias_nor_noise(measure: Measure) -> None:
    errors = measure(FullSoftmax(), 40, draws=1)
    assert relative(errors.bias_squares, errors).max() < 1e-6
    assert relative(errors.error_squares, errors).max() < 1e-6
    assert np.abs(errors.loss_differences).max() < 1e-5


@pytest.mark.parametrize("loss", [row_losses.standard, row_losses.importance])
def test_a_sample_that_holds_every_item_once_is_exact(measure: Measure, loss: object) -> None:
    estimator = Sampled(lambda _: Exhaustive(40), loss)  # type: ignore[arg-type]
    errors = measure(estimator, 1, draws=2)
    assert relative(errors.error_squares, errors).max() < 1e-6
    assert np.abs(errors.loss_differences).max() < 1e-5
    assert errors.hits == pytest.approx(np.full(24, 1 / 40))


@pytest.mark.parametrize("name", ["monte_carlo", "exact_importance"])
def test_an_unbiased_estimate_reads_no_more_bias_than_noise_leaves(
    measure: Measure, build: Build, name: str
) -> None:
    errors = measure(build(name), 8)
    noise = relative(errors.error_squares, errors)
    assert (noise > 0.2).all()  # there is something to average away
    assert (relative(errors.bias_squares, errors) < 2 * noise / np.sqrt(400)).all()


def test_the_bias_of_a_self_normalised_sample_falls_with_its_size(
    measure: Measure, build: Build
) -> None:
    # The bias falls as 1 / S; its square less what noise leaves of it, over R draws, is unbiased.
    biases = []
    for size in (4, 32):
        errors = measure(build("importance_sampling"), size)
        excess = errors.bias_squares.sum(axis=0) - errors.error_squares.sum(axis=0) / 400
        biases.append(np.sqrt(excess / errors.full_squares.sum(axis=0)))
    assert (biases[0] > 3 * biases[1]).all()


def test_the_noise_falls_as_one_over_the_root_of_the_sample_size(
    measure: Measure, build: Build
) -> None:
    few, many = (measure(build("monte_carlo"), size) for size in (8, 128))
    ratio = relative(few.error_squares, few) / relative(many.error_squares, many)
    np.testing.assert_allclose(ratio, 4, rtol=0.1)


def test_without_the_correction_a_bias_stays_that_draws_do_not_average_away(
    measure: Measure, build: Build
) -> None:
    corrected, plain = (
        relative(errors.bias_squares, errors)
        for errors in (
            measure(build("importance_sampling"), 256, draws=100),
            measure(build("uncorrected_popularity"), 256, draws=100),
        )
    )
    assert (plain > 3 * corrected).all()


@pytest.mark.parametrize(
    ("kind", "size"),
    # Few candidates, and so many that repeats abound; shared by the rows, and of each row's own.
    [
        (WithReplacementSampler, 5),
        (WithReplacementSampler, 16),
        (PerQuerySampler, 2),
        (PerQuerySampler, 16),
    ],
)
def test_agrees_with_a_slow_version_in_plain_formulas(
    subject: Subject, kind: type[WithReplacementSampler] | type[PerQuerySampler], size: int
) -> None:
    """One row and one draw at a time, the gradient from the softmax's own formula."""
    proposal = PopularityProposal(torch.arange(1, 41), alpha=1.0)
    estimator = Sampled(lambda size: kind(proposal, num_sampled=size), row_losses.importance)
    errors = measure_rows(
        estimator, subject, size, num_draws=7, stream=(3, "slow"), advance=lambda _: None
    )
    scores = (subject.query_vectors @ subject.item_vectors.T).double()
    for row in (0, 11, 23):
        positive, tau = int(subject.positive_rows[row]), subject.temperature
        full = (scores[row] / tau).softmax(dim=0)
        full[positive] -= 1
        differences = []
        for turn in range(7):
            drawn = (
                kind(proposal, num_sampled=size)
                .sample(DrawRequest(subject.positive_rows), make_generator(3, "slow", size, turn))
                .rows
            )
            drawn = drawn if drawn.dim() == 1 else drawn[row]
            weights = (scores[row, drawn] / tau - proposal.log_probability(drawn)).softmax(dim=0)
            estimate = torch.zeros(40, dtype=torch.float64).index_add_(0, drawn, weights)
            estimate[positive] -= 1
            differences.append((estimate - full) / tau)
        stacked = torch.stack(differences)
        assert errors.bias_squares[row, 0] == pytest.approx(
            float(stacked.mean(dim=0).square().sum()), rel=1e-4
        )
        of_query = stacked @ subject.item_vectors.double()
        assert errors.error_squares[row, 1] == pytest.approx(
            float(of_query.square().sum(dim=1).mean()), rel=1e-4
        )
        of_items = stacked[:, :, None] * subject.query_vectors[row].double()
        assert errors.error_squares[row, 2] == pytest.approx(
            float(of_items.square().sum(dim=(1, 2)).mean()), rel=1e-4
        )


@pytest.mark.parametrize(
    "name", ["standard_popularity", "in_batch", "mixed", "exact_importance", "bpr"]
)
def test_a_row_does_not_depend_on_the_rows_beside_it(
    subject: Subject, build: Build, name: str
) -> None:
    half = replace(
        subject,
        query_vectors=subject.query_vectors[:10],
        positive_rows=subject.positive_rows[:10],
        last_rows=subject.last_rows[:10],
    )
    whole, part = (
        measure_rows(build(name), some, 12, num_draws=5, stream=(0, name), advance=lambda _: None)
        for some in (subject, half)
    )
    np.testing.assert_allclose(part.bias_squares, whole.bias_squares[:10], rtol=1e-4)
    np.testing.assert_allclose(part.hits, whole.hits[:10])


@pytest.mark.parametrize(
    "name", ["bigram", "monte_carlo", "adaptive_importance_sampling", "exact_importance"]
)
def test_the_blocks_of_rows_do_not_show(
    subject: Subject, build: Build, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def measured() -> RowErrors:
        return measure_rows(
            build(name), subject, 6, num_draws=3, stream=(0, name), advance=lambda _: None
        )

    whole = measured()
    monkeypatch.setattr("recsys.diagnosis.subject._MOST_SCORES", 7 * 40)
    assert len(list(subject.blocks())) == 4
    cut = measured()
    np.testing.assert_allclose(cut.error_squares, whole.error_squares, rtol=1e-4)
    np.testing.assert_allclose(cut.bias_squares, whole.bias_squares, rtol=1e-4)
    assert cut.facts == whole.facts


def test_the_same_seed_gives_the_same_numbers_and_another_gives_others(
    subject: Subject, build: Build
) -> None:
    first, again, other = (
        measure_rows(
            build("monte_carlo"),
            subject,
            4,
            num_draws=3,
            stream=(seed, "x"),
            advance=lambda _: None,
        ).error_squares
        for seed in (0, 0, 1)
    )
    assert (first == again).all()
    assert (first != other).any()


def test_what_the_draws_tell_is_averaged(measure: Measure, build: Build) -> None:
    chain = measure(build("metropolis_hastings"), 16, draws=5)
    assert 0 < chain.facts["acceptance_rate"] < 1
    assert np.isnan(chain.effective_sizes).all()
    adaptive = measure(build("adaptive_importance_sampling"), 8, draws=5)
    assert adaptive.facts["candidates"] > 8  # it grew
    full = measure(build("adaptive_importance_sampling"), 100, draws=5)  # beyond the catalogue
    assert full.facts["full_softmax_share"] > 0
    model = measure(build("monte_carlo"), 16, draws=5)
    assert model.effective_sizes == pytest.approx(np.full(24, 16.0))


def test_uniform_draws_hit_the_positive_once_in_a_catalogue(measure: Measure, build: Build) -> None:
    errors = measure(build("standard_uniform"), 20)
    assert errors.hits.mean() == pytest.approx(1 / 40, rel=0.1)  # 24 x 400 x 20 coins


def test_the_own_column_of_a_batch_is_no_accidental_hit(batch: Subject, build: Build) -> None:
    errors = measure_rows(
        build("in_batch"), batch, 24, num_draws=1, stream=(0, "own"), advance=lambda _: None
    )
    positives = batch.positive_rows
    equal = (positives[:, None] == positives).sum(dim=1) - 1  # other rows of the same item
    np.testing.assert_allclose(errors.hits, equal.numpy() / 24)


def test_refuses_no_draws(measure: Measure) -> None:
    with pytest.raises(ArgumentError, match="`num_draws` must be above 0"):
        measure(FullSoftmax(), 1, draws=0)
