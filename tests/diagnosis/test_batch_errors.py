"""One step at the batch size: its gradient over the outputs of both towers."""

from collections.abc import Callable

import pytest
import torch
from torch.testing import assert_close

from recsys.diagnosis import (
    KINDS,
    BatchSpread,
    Estimator,
    FullSoftmax,
    Material,
    Subject,
    full_gradient,
    measure_step,
)
from recsys.losses import in_batch_softmax_loss

Build = Callable[..., Estimator]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_full_gradient_is_that_of_autograd_through_a_plain_softmax(batch: Subject) -> None:
    queries = batch.query_vectors.clone().requires_grad_()
    items = batch.item_vectors.clone().requires_grad_()
    logits = queries @ items.T / batch.temperature
    torch.autograd.backward(torch.nn.functional.cross_entropy(logits, batch.positive_rows))
    full = full_gradient(batch)
    assert queries.grad is not None
    assert items.grad is not None
    assert_close(full.queries, queries.grad)
    assert_close(full.items, items.grad)


def test_a_step_of_the_full_softmax_has_no_error(batch: Subject) -> None:
    step = measure_step(FullSoftmax(), batch, 40, full_gradient(batch), generator())
    assert step.query_square + step.item_square < 1e-10
    assert step.cosine == pytest.approx(1, abs=1e-6)
    assert step.seconds >= step.draw_seconds >= 0


def test_in_batch_candidates_are_the_batch_and_its_own_column_leaves(
    batch: Subject, build: Build, material: Material
) -> None:
    queries = batch.query_vectors.clone().requires_grad_()
    items = batch.item_vectors.clone().requires_grad_()
    counts = torch.as_tensor(material.counts, dtype=torch.float64)
    losses = in_batch_softmax_loss(
        queries,
        items[batch.positive_rows],
        candidate_rows=batch.positive_rows,
        candidate_log_q=(counts / counts.sum()).log()[batch.positive_rows].float(),
        temperature=batch.temperature,
    )
    torch.autograd.backward(losses.mean())
    full = full_gradient(batch)
    assert queries.grad is not None
    assert items.grad is not None
    step = measure_step(build("in_batch"), batch, len(batch), full, generator())
    expected = (queries.grad - full.queries).square().sum()
    assert step.query_square == pytest.approx(float(expected), rel=1e-4)
    expected = (items.grad - full.items).square().sum()
    assert step.item_square == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_estimator_takes_a_step_with_finite_numbers(
    name: str, batch: Subject, build: Build
) -> None:
    step = measure_step(build(name), batch, 16, full_gradient(batch), generator())
    assert torch.tensor(list(vars(step).values())).isfinite().all()
    assert -1.0001 <= step.cosine <= 1.0001


def test_draws_of_each_query_leave_less_noise_in_the_items_than_shared_ones(
    batch: Subject, build: Build
) -> None:
    full = full_gradient(batch)

    def error(name: str) -> float:
        steps = [measure_step(build(name), batch, 16, full, generator(i)) for i in range(30)]
        return sum(step.item_square for step in steps)

    assert error("per_query") < error("standard_popularity_075") / 2


def test_the_blocks_of_rows_with_their_own_candidates_do_not_show(
    batch: Subject, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = full_gradient(batch)
    whole = measure_step(build("bigram"), batch, 16, full, generator())
    monkeypatch.setattr("recsys.diagnosis.batch_errors._MOST_VALUES", 5 * 16 * 6)
    cut = measure_step(build("bigram"), batch, 16, full, generator())
    assert cut.item_square == pytest.approx(whole.item_square, rel=1e-4)
    assert cut.query_square == pytest.approx(whole.query_square, rel=1e-4)


def test_rows_that_fall_back_have_the_full_gradient(batch: Subject, build: Build) -> None:
    estimator = build("adaptive_importance_sampling")  # asks for more than the catalogue is worth
    step = measure_step(estimator, batch, 100, full_gradient(batch), generator())
    assert step.query_square + step.item_square < 1e-10


def test_the_spread_over_batches_is_the_standard_deviation_over_the_norm() -> None:
    # Gradients (1, 0) and (0, 1): mean square norm 1; their mean has square 1/2, so the variance
    # is (1 - 1/2) * 2 / 1 = 1.
    spread = BatchSpread()
    spread.add(torch.tensor([1.0, 0.0]))
    assert spread.relative() is None
    spread.add(torch.tensor([0.0, 1.0]))
    assert spread.relative() == pytest.approx(1.0)
    same = BatchSpread()
    for _ in range(3):
        same.add(torch.tensor([1.0, 2.0]))
    assert same.relative() == pytest.approx(0, abs=1e-6)
