"""Sums of losses that come late from a device, against a loop; what stops a run, and when."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from recsys.data import FeatureSchema, FeatureTable, TrainingBatch
from recsys.foundations import TrainingError
from recsys.training import Position
from recsys.training.loss_sums import LateSums, PromptSums, start_sums

CPU = torch.device("cpu")


class SlowCopies:
    """Copies that have come once so many later ones were started."""

    def __init__(self, delay: int) -> None:
        self._delay, self._started, self.waits = delay, 0, 0

    def __call__(self, values: Tensor) -> "SlowCopy":
        self._started += 1
        return SlowCopy(self, self._started, values.tolist())

    def has_come(self, number: int) -> bool:
        return self._started - number >= self._delay


class SlowCopy:
    def __init__(self, copies: SlowCopies, number: int, values: list[float]) -> None:
        self._copies, self._number, self._values = copies, number, values

    def is_done(self) -> bool:
        return self._copies.has_come(self._number)

    def read(self) -> list[float]:
        self._copies.waits += not self.is_done()
        return self._values


def make_batch(step: int) -> TrainingBatch:
    rows = np.arange(7) + 10 * step
    nothing = FeatureTable.missing(FeatureSchema(), 7)
    return TrainingBatch(rows, rows + 1, np.zeros((7, 0), np.int64), None, nothing)


def run_steps(
    sums: PromptSums | LateSums, position: Position, losses: list[float]
) -> list[tuple[float, float]]:
    """Take a step for each loss, of weight 2; give the position's sums after each."""
    seen = []
    for loss in losses:
        sums.add(torch.tensor(loss), torch.tensor(2.0), make_batch(position.step))
        position.step += 1
        seen.append((position.loss_sum, position.weight_sum))
    return seen


LOSSES = st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=40)


@given(losses=LOSSES, delay=st.integers(0, 30))
def test_sums_that_come_late_are_in_the_end_those_that_came_at_once(
    losses: list[float], delay: int
) -> None:
    positions = [Position(loss_sum=3.5, weight_sum=1.5) for _ in range(2)]
    late = LateSums(positions[0], CPU, SlowCopies(delay))
    run_steps(late, positions[0], losses)
    late.settle()
    run_steps(PromptSums(positions[1]), positions[1], losses)
    assert positions[0] == positions[1]
    assert positions[0].loss_sum == pytest.approx(3.5 + math.fsum(losses), abs=1e-6)


def test_a_step_does_not_wait_for_its_sums_until_they_are_asked_for() -> None:
    copies, position = SlowCopies(delay=3), Position()
    sums = LateSums(position, CPU, copies)
    seen = run_steps(sums, position, [1.0, 2.0, 4.0, 8.0, 16.0])
    assert seen == [(0, 0), (0, 0), (0, 0), (1, 2), (3, 4)]
    assert copies.waits == 0
    sums.settle()
    assert (position.loss_sum, position.weight_sum) == (31, 10)
    assert copies.waits == 3


def test_no_more_than_sixteen_steps_are_under_way() -> None:
    copies, position = SlowCopies(delay=1000), Position()
    sums = LateSums(position, CPU, copies)
    run_steps(sums, position, [1.0] * 20)
    assert (copies.waits, position.loss_sum) == (4, 4.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("make", "last"),
    [
        (PromptSums, 4),
        (lambda position: LateSums(position, CPU, SlowCopies(delay=2)), 6),
    ],
)
def test_a_loss_that_is_not_finite_is_told_by_its_own_step_whenever_it_is_found(
    make: Callable[[Position], PromptSums | LateSums], last: int, value: float
) -> None:
    position = Position(epoch=1)
    sums = make(position)
    words = rf"the loss is {value} at step 4 \(epoch 2, users \[30, 31, 32, 33, 34\]\.\.\., items "
    words += r"\[31, 32, 33, 34, 35\]\.\.\.\); the last checkpoint is kept\."
    with pytest.raises(TrainingError, match=words):
        run_steps(sums, position, [1.0, 2.0, 3.0, value, 5.0, 6.0, 7.0])
    assert position.step + 1 == last
    assert math.isfinite(position.loss_sum)


def test_a_loss_that_is_not_finite_is_found_before_the_sums_are_settled() -> None:
    position = Position()
    sums = LateSums(position, CPU, SlowCopies(delay=100))
    run_steps(sums, position, [1.0, math.nan, 3.0])
    with pytest.raises(TrainingError, match="the loss is nan at step 2"):
        sums.settle()


def test_on_the_cpu_a_step_looks_at_its_loss_before_it_goes_on() -> None:
    assert isinstance(start_sums(Position(), CPU), PromptSums)


@pytest.mark.gpu
def test_on_cuda_no_step_waits() -> None:
    device, position = torch.device("cuda"), Position()
    sums = start_sums(position, device)
    losses = torch.arange(100.0, device=device)
    weight = torch.ones((), device=device)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for loss in losses.unbind()[:16]:
            sums.add(loss, weight, make_batch(position.step))
            position.step += 1
    finally:
        torch.cuda.set_sync_debug_mode("default")
    sums.settle()
    assert (position.loss_sum, position.weight_sum) == (120.0, 16.0)
