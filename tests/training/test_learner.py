"""A learner against the training loop, and what it does at a loss that is not finite."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from recsys.training import Learner, TrainingRun, fit

MakeRun = Callable[..., TrainingRun]


def make_learner(run: TrainingRun, **changes: Any) -> Learner:
    parts: dict[str, Any] = {"schedule": run.schedule, "gradient_clip": run.settings.gradient_clip}
    return Learner(run.step, run.optimizers, **parts | changes)


@pytest.mark.parametrize("clip", [0.0, 0.01])
def test_learning_batch_by_batch_is_what_the_loop_does(make_run: MakeRun, clip: float) -> None:
    by_loop, by_hand = (make_run(epochs=2, gradient_clip=clip) for _ in range(2))
    torch.manual_seed(7)
    records = fit(by_loop, resume=False).records
    torch.manual_seed(7)
    learner, losses = make_learner(by_hand), []
    learner.model.train()
    for epoch in range(2):
        learner.start_epoch()
        for batch in by_hand.batches.epoch(epoch):
            losses.append(learner.learn(batch) * len(batch.positives))
        assert learner.statistics()["sample_size"] == pytest.approx(records[epoch]["sample_size"])
    rows = by_hand.batches.num_rows
    halves = [losses[: len(losses) // 2], losses[len(losses) // 2 :]]
    assert [sum(half) / rows for half in halves] == pytest.approx(
        [record["train_loss"] for record in records], rel=1e-5
    )
    last = by_loop.store  # the loop ends with its best epoch; its last one is in the checkpoint
    last.resume(by_loop.trainable)
    for name, value in by_loop.step.model.state_dict().items():
        assert_close(learner.model.state_dict()[name], value, rtol=0, atol=0)


def test_each_step_takes_its_share_of_the_learning_rate(make_run: MakeRun) -> None:
    run = make_run()
    rates = []
    learner = make_learner(run, schedule=lambda step: 1 / (1 + step))
    for batch in list(run.batches.epoch(0))[:3]:
        learner.learn(batch)
        rates.append(run.optimizers[0].param_groups[0]["lr"])
    assert rates == pytest.approx([0.05, 0.025, 0.05 / 3])


def test_nothing_changes_at_a_loss_that_is_not_finite(make_run: MakeRun) -> None:
    run = make_run()
    learner = make_learner(run)
    learner.model.item_tower.rows.dropout = 0.0  # else the item may be taken for an unknown one
    batch = next(run.batches.epoch(0))
    table = next(value for name, value in learner.model.tables() if name == "item_tower.ids.weight")
    with torch.no_grad():
        table[int(batch.positives[0])] = math.nan
    before = {name: value.clone() for name, value in learner.model.state_dict().items()}
    assert math.isnan(learner.learn(batch))
    for name, value in learner.model.state_dict().items():
        assert_close(value, before[name], rtol=0, atol=0, equal_nan=True)
