"""The programs that a training step is measured against compute the same step; what is compared."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.testing import assert_close

from recsys.benchmark import (
    MERGED,
    STEP,
    FloorStep,
    Job,
    NaiveStep,
    StepInputs,
    StepPlan,
    StepSize,
    draw_for,
    make_step_batches,
    measure_step,
)
from recsys.benchmark.step_floor import FloorTower, softmax_gradients

SIZE = StepSize(num_items=60, num_users=500, batch_size=300, num_sampled=20, dim=4)
HIDDEN = 32  # so many that no row meets dead ones alone


def make_inputs() -> list[StepInputs]:
    batches = make_step_batches(SIZE, history_length=0, seed=0)
    return draw_for(batches, SIZE, seed=0)


def plain_loss(queries: Tensor, positives: Tensor, sampled: Tensor, batch: StepInputs) -> Tensor:
    """Compute the mean loss row by row, without the accidental hits of the row."""
    losses = []
    for row in range(len(queries)):
        stays = batch.sampled != batch.positives[row]
        logits = sampled[stays] @ queries[row] - batch.sampled_log_q[stays]
        own = queries[row] @ positives[row] - batch.positive_log_q[row]
        losses.append(torch.cat([own[None], logits]).logsumexp(dim=0) - own)
    return torch.stack(losses).mean()


def make_vectors(size: int, generator: torch.Generator) -> Tensor:
    vectors: Tensor = torch.randn(size, SIZE.dim, generator=generator)
    return vectors.requires_grad_()


def test_the_floors_softmax_has_the_gradients_of_the_plain_loss() -> None:
    batch, generator = make_inputs()[0], torch.Generator().manual_seed(1)
    queries, positives = (make_vectors(len(batch.users), generator) for _ in range(2))
    sampled = make_vectors(len(batch.sampled), generator)
    assert (batch.positives[:, None] == batch.sampled).any()  # some are hit
    expected = torch.autograd.grad(
        plain_loss(queries, positives, sampled, batch), (queries, positives, sampled)
    )
    with torch.no_grad():
        of_queries, of_candidates = softmax_gradients(queries, positives, sampled, batch)
    assert_close(of_queries, expected[0], rtol=1e-4, atol=1e-7)
    assert_close(of_candidates, torch.cat(expected[1:]), rtol=1e-4, atol=1e-7)


def test_the_floors_tower_has_the_gradients_of_autograd() -> None:
    tower = FloorTower(SIZE.dim, HIDDEN, torch.Generator().manual_seed(0))
    weights = [value.clone().requires_grad_() for value in (tower.first, tower.second)]
    inputs = torch.randn(9, SIZE.dim, generator=torch.Generator().manual_seed(2))
    leaf = inputs.clone().requires_grad_()
    outputs = functional.linear(functional.linear(leaf, weights[0]).relu(), weights[1])
    gradient = torch.arange(36.0).reshape(9, 4) / 36
    assert_close(tower.forward(inputs), outputs.detach())
    torch.autograd.backward(outputs, gradient)
    assert_close(tower.backward(gradient), leaf.grad)
    before = tower.first.clone()
    tower.update()
    # Adam's first step without its correction: 0.005 * 0.1 g / (sqrt(0.001 g^2) + 1e-8).
    of_first = weights[0].grad
    assert of_first is not None
    moved = 0.005 * 0.1 * of_first / (0.001**0.5 * of_first.abs() + 1e-8)
    assert_close(before - tower.first, moved, rtol=1e-3, atol=1e-6)


def test_the_floor_changes_the_rows_of_its_batch_and_no_other() -> None:
    inputs = make_inputs()
    floor = FloorStep(SIZE, HIDDEN, inputs, seed=0)
    users, items = floor.users.values.clone(), floor.items.values.clone()
    floor()
    batch = inputs[0]
    changed = [
        (now.values != before).any(dim=1).nonzero()[:, 0].tolist()
        for now, before in ((floor.users, users), (floor.items, items))
    ]
    seen = {*batch.positives.tolist(), *batch.sampled.tolist()}
    assert changed == [sorted(set(batch.users.tolist())), sorted(seen)]


def test_the_naive_program_has_the_plain_loss() -> None:
    batch = make_inputs()[0]
    naive = NaiveStep(SIZE, HIDDEN, [batch])
    with torch.no_grad():
        positives, sampled = naive.items(batch.positives), naive.items(batch.sampled)
        expected = plain_loss(naive.users(batch.users), positives, sampled, batch)
        assert_close(naive.loss(batch), expected)
    before = [value.detach().clone() for value in naive.users.parameters()]
    naive()
    changed = zip(naive.users.parameters(), before, strict=True)
    assert not any(torch.equal(now, value) for now, value in changed)


def test_draws_have_the_log_of_their_expected_count() -> None:
    # Popularity by Zipf's law over one item: p = 1, so that 20 draws expect 20.
    size = replace(SIZE, num_items=1)
    batch = draw_for(make_step_batches(size, history_length=0, seed=0), size, seed=0)[0]
    assert_close(batch.sampled_log_q.exp(), torch.full((20,), 20.0))
    assert_close(batch.positive_log_q, batch.sampled_log_q[:1].expand(300))


class Counted:
    """Steps that only count how often they are taken, by size."""

    def __init__(self) -> None:
        self.taken: dict[StepSize, int] = {}

    def __call__(self, size: StepSize, batches: Any) -> Mapping[str, Job]:
        assert len(batches[0].users) == size.batch_size
        self.taken[size] = 0

        def take() -> None:
            self.taken[size] += 1

        return {STEP: take, MERGED: take}


def make_plan(**changes: Any) -> StepPlan:
    plan = StepPlan(
        size=SIZE,
        catalogue_sizes=[90, 60],
        naive_sizes=[60, 7],
        batch_sizes=[300, 100],
        dims=[2, 3],
        hidden=HIDDEN,
        history_length=0,
        steps=2,
        rounds=3,
        seed=0,
    )
    return replace(plan, **changes)


def test_every_size_is_measured_against_the_smallest_the_floor_and_the_naive_program() -> None:
    counted = Counted()
    result = measure_step(counted, make_plan())
    pairs = [(ratio.first, ratio.second) for ratio in result.ratios]
    assert pairs[:5] == [
        ("step, 90 items", "step, 60 items"),
        ("step, 90 items", "floor program, 90 items"),
        ("step, 60 items", "floor program, 60 items"),
        ("step, 60 items", "naive: all logits, dense Adam, 60 items"),
        ("step, repeats merged, 90 items", "step, repeats merged, 60 items"),
    ]
    one, floor = (result.measurements[f"{name}, 90 items"] for name in (STEP, "floor program"))
    assert (one.calls, one.units) == (2, 600)
    assert one.floor_seconds == floor.seconds_a_call
    lines = {(line.name, line.axis): line.sizes for line in result.growth}
    assert lines[STEP, "catalogue size"] == [60, 90]
    assert lines["naive: all logits, dense Adam", "catalogue size"] == [60]
    assert lines[STEP, "batch size"] == [100, 300]
    assert lines["floor program", "dimension"] == [2, 3]
    # 90 items, and 60 at 100 rows: a round unmeasured and three measured, of two steps each, for
    # both names; and once each for the memory.
    for size in (replace(SIZE, num_items=90), replace(SIZE, batch_size=100)):
        assert counted.taken[size] == 2 * (4 * 2 + 1)


@pytest.mark.parametrize(("batch_sizes", "dims"), [([], []), ([100, 100], [2])])
def test_nothing_but_the_catalogues_is_measured_where_no_other_size_varies(
    batch_sizes: list[int], dims: list[int]
) -> None:
    counted = Counted()
    plan = make_plan(batch_sizes=batch_sizes, dims=dims, naive_sizes=[], catalogue_sizes=[60])
    result = measure_step(counted, plan)
    assert {line.axis for line in result.growth} == {"catalogue size"}
    assert set(result.measurements) == {
        f"{name}, 60 items" for name in (STEP, MERGED, "floor program")
    }
    assert set(counted.taken) == {replace(SIZE, num_items=60)}


def test_another_model_is_measured_alone() -> None:
    result = measure_step(Counted(), make_plan(hidden=None))
    names = {name.rsplit(", ", 1)[0] for name in result.measurements}
    assert names == {STEP, MERGED}
    assert result.measurements["step, 90 items"].floor_seconds is None


def test_no_step_is_refused() -> None:
    with pytest.raises(ValueError, match="`steps` must be above 0"):
        measure_step(Counted(), make_plan(steps=0))
