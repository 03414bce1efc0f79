"""Training on batches that a thread makes ahead, from a log shuffled in pools."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from torch import Tensor

from recsys.data import EventBatches, PrefetchedBatches, PreparedDataset
from recsys.foundations import TrainingError
from recsys.training import ModelStep, TrainingRun, fit

MakeRun = Callable[..., TrainingRun]


class StopError(Exception):
    """Stands for a kill at this moment."""


class Ending:
    """A step that ends the run at a call, or spoils its loss."""

    def __init__(self, step: ModelStep, *, call: int, by: str) -> None:
        self._step, self._left, self._by = step, call, by
        self.model, self.objective, self.generator = step.model, step.objective, step.generator

    def __call__(self, batch: Any) -> tuple[Tensor, Tensor]:
        losses, weights = self._step(batch)
        self._left -= 1
        if self._left == 0 and self._by == "kill":
            raise StopError
        return (losses * float("nan") if self._left == 0 else losses), weights


def with_pools(run: TrainingRun, data: PreparedDataset, *, prefetch: int) -> TrainingRun:
    """Shuffle 150 rows at a time, so that batches of 64 lie across pools."""
    batches = EventBatches(
        data.train,
        clock=data.clock,
        ties="include",
        history_length=5,
        batch_size=64,
        drop_last=False,
        seed=0,
        shuffle_rows=150,
    )
    assert len(data.train) > 2 * 150
    return replace(run, batches=PrefetchedBatches(batches, depth=prefetch) if prefetch else batches)


def weights_of(run: TrainingRun) -> dict[str, list[Any]]:
    return {name: value.tolist() for name, value in run.step.model.state_dict().items()}


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "batches"]


@pytest.mark.parametrize("prefetch", [1, 3])
@pytest.mark.parametrize("call", [5, 12])  # steps 3 and 9 are saved; 6 batches an epoch
def test_a_run_stopped_in_mid_epoch_goes_on_as_if_it_had_not(
    make_run: MakeRun, dataset: PreparedDataset, prefetch: int, call: int
) -> None:
    whole = with_pools(make_run(epochs=2), dataset, prefetch=0)
    fit(whole, resume=False)

    stopped = make_run(
        epochs=2, checkpoint_steps=3, step=lambda step: Ending(step, call=call, by="kill")
    )
    with pytest.raises(StopError):
        fit(with_pools(stopped, dataset, prefetch=prefetch), resume=False)
    resumed = with_pools(make_run(epochs=2, checkpoint_steps=3), dataset, prefetch=prefetch)
    fit(resumed, resume=True)
    assert weights_of(resumed) == weights_of(whole)
    assert threads() == []


@pytest.mark.parametrize(("by", "error"), [("kill", StopError), ("loss", TrainingError)])
def test_no_thread_is_left_while_the_error_of_a_step_is_handled(
    make_run: MakeRun, dataset: PreparedDataset, by: str, error: type[Exception]
) -> None:
    run = make_run(epochs=1, step=lambda step: Ending(step, call=2, by=by))
    with pytest.raises(error) as caught:
        fit(with_pools(run, dataset, prefetch=2), resume=False)
    assert threads() == []
    assert caught.tb is not None  # its frames are alive, and with them all that they hold
