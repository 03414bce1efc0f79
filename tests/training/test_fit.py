"""The loop: what an epoch records, the best weights, early stopping, refusals, resumption."""

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from recsys.data import PreparedDataset, TrainingBatch
from recsys.foundations import TrainingError
from recsys.tracking import NullTracker
from recsys.training import FitResult, ModelStep, TrainingRun, fit

MakeRun = Callable[..., TrainingRun]


class StopError(Exception):
    """Stands for a kill at this moment."""


class Wrapped:
    """A step that can be changed from outside."""

    def __init__(self, step: ModelStep, change: Callable[[int, Tensor, Tensor], Any]) -> None:
        self._step, self._change, self._calls = step, change, 0
        self.model, self.objective, self.generator = step.model, step.objective, step.generator

    def __call__(self, batch: TrainingBatch) -> Any:
        losses, weights = self._step(batch)
        self._calls += 1
        return self._change(self._calls, losses, weights)


class Recalls:
    """A validator that answers from a list; what else it measures does not change."""

    def __init__(self, *values: float | None, **more: float) -> None:
        self.k, self._values, self._more = 5, list(values), more
        self.models: list[dict[str, Tensor]] = []

    def measure(self, model: nn.Module) -> dict[str, float]:
        self.models.append({name: value.clone() for name, value in model.state_dict().items()})
        value = self._values[len(self.models) - 1]
        return {} if value is None else {"recall_at_5": value} | self._more


def with_validator(run: TrainingRun, validator: Any) -> TrainingRun:
    return TrainingRun(**{**vars(run), "validator": validator})


def weights_of(run: TrainingRun) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in run.step.model.state_dict().items()}


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    assert first.keys() == second.keys()
    return all(torch.equal(first[name], second[name]) for name in first)


def without_rates(result: FitResult) -> list[dict[str, float]]:
    drop = "rows_per_second"
    return [{k: v for k, v in record.items() if k != drop} for record in result.records]


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_validation_meets_unknown_items_as_the_rarest_where_no_step_teaches_them(
    make_run: MakeRun, dataset: PreparedDataset, dropout: float
) -> None:
    counts, validator = dataset.items.counts[: dataset.num_items], Recalls(0.1, 0.2)
    run = TrainingRun(**{**vars(make_run()), "validator": validator, "item_counts": counts})
    run.step.model.item_tower.rows.dropout = dropout
    fit(run, resume=False)
    rarest = counts <= np.sort(counts)[len(counts) // 10 - 1]  # of 30 items, 3
    for state in [*validator.models, run.step.model.state_dict()]:
        table = state["item_tower.ids.weight"]
        assert torch.allclose(table[-1], table[:-1][rarest].mean(dim=0)) == (dropout == 0)


def test_each_epoch_is_recorded_and_the_model_learns_the_planted_structure(
    make_run: MakeRun,
) -> None:
    run = make_run(epochs=6)
    result = fit(run, resume=False)
    assert [record["epoch"] for record in result.records] == [1, 2, 3, 4, 5, 6]
    assert {record["train_rows"] for record in result.records} == {run.batches.num_rows}
    assert all(record["rows_per_second"] > 0 for record in result.records)
    assert result.records[-1]["train_loss"] < result.records[0]["train_loss"] - 0.05
    recalls = [record["validation_recall_at_5"] for record in result.records]
    assert (result.best_recall, result.validate_at) == (max(recalls), 5)
    assert result.best_epoch == 1 + recalls.index(max(recalls))


def test_the_likelihood_is_recorded_and_the_log_line_shows_the_perplexity(
    make_run: MakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run = make_run(epochs=2)
    records = fit(run, resume=False).records
    for record in records:
        mean = record["validation_log_likelihood"]
        assert record["validation_perplexity"] == pytest.approx(math.exp(-mean), rel=1e-12)
        shown = f"validation recall@5 {record['validation_recall_at_5']:.4f}, perplexity "
        shown += f"{record['validation_perplexity']:.1f}, "
        assert sum(shown in message for message in caplog.messages) == 1
        assert record["validation_num_scored_events"] == 40  # the last but one event of each user
        assert record["validation_num_unknown_events"] == 0


def test_what_the_draws_were_like_is_recorded_and_shown(
    make_run: MakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run = make_run(epochs=2)
    records = fit(run, resume=False).records
    rows, batches = run.batches.num_rows, run.batches.count_batches(1)
    for record in records:  # each epoch's own; in the batch there are as many as it has rows
        assert record["sample_size"] == rows / batches
    shown = f", sample size {rows / batches:.4g}, "
    assert sum(shown in message for message in caplog.messages) == 2


def test_the_statistics_of_an_epoch_begin_anew_with_it(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(epochs=3)
    objective, steps = run.step.objective, 0
    losses = objective.losses

    def count(*arguments: Any) -> Tensor:
        nonlocal steps
        steps += 1
        return losses(*arguments)

    def begin() -> None:
        nonlocal steps
        steps = 0

    monkeypatch.setattr(objective, "losses", count)
    monkeypatch.setattr(objective, "start_epoch", begin)
    monkeypatch.setattr(objective, "statistics", lambda: {"num_steps": float(steps)})
    records = fit(run, resume=False).records
    assert [record["num_steps"] for record in records] == [run.batches.count_batches(1)] * 3


def test_a_perplexity_beyond_a_float_is_shown_and_left_out_of_the_record(
    make_run: MakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    scores = {"log_likelihood": -800.0, "perplexity": math.inf}
    run = with_validator(make_run(epochs=1), Recalls(0.1, **scores))
    [record] = fit(run, resume=False).records
    assert record["validation_log_likelihood"] == -800.0
    assert "validation_perplexity" not in record
    assert any("recall@5 0.1000, perplexity inf, " in message for message in caplog.messages)
    assert run.store.resume(run.trainable).records == [record]  # the checkpoint's JSON took it


def test_the_epochs_loss_is_the_weighted_mean_over_its_rows(make_run: MakeRun) -> None:
    seen: list[tuple[Tensor, Tensor]] = []

    def weigh(call: int, losses: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        weights = torch.arange(len(losses), dtype=torch.float32) + call
        seen.append((losses.detach().double(), weights.double()))
        return losses, weights

    run = make_run(epochs=1, step=lambda step: Wrapped(step, weigh))
    [record] = fit(run, resume=False).records
    total = sum(float((losses * weights).sum()) for losses, weights in seen)
    mean = total / sum(float(weights.sum()) for _, weights in seen)
    assert record["train_loss"] == pytest.approx(mean, rel=1e-5)


def test_rows_without_weight_move_nothing(make_run: MakeRun) -> None:
    run = make_run(epochs=1, step=lambda step: Wrapped(step, lambda _, a, w: (a, 0 * w)))
    run = with_validator(run, Recalls(None))
    before = weights_of(run)
    [record] = fit(run, resume=False).records
    assert record["train_loss"] == 0.0
    assert same(before, weights_of(run))


def test_the_best_epochs_weights_come_back(make_run: MakeRun) -> None:
    validator = Recalls(0.1, 0.3, 0.2)
    run = with_validator(make_run(epochs=3), validator)
    result = fit(run, resume=False)
    assert (result.best_epoch, result.best_recall) == (2, 0.3)
    assert same(weights_of(run), validator.models[1])
    assert not same(weights_of(run), validator.models[2])


def test_of_equal_epochs_the_first_is_the_best(make_run: MakeRun) -> None:
    run = with_validator(make_run(epochs=3), Recalls(0.2, 0.2, 0.2))
    assert fit(run, resume=False).best_epoch == 1


def test_without_validation_the_last_epochs_weights_stay(make_run: MakeRun) -> None:
    validator = Recalls(None, None)
    run = with_validator(make_run(epochs=2, patience=1), validator)
    result = fit(run, resume=False)
    assert (result.best_epoch, result.best_recall) == (2, None)
    assert same(weights_of(run), validator.models[1])


def test_stops_after_so_many_epochs_without_a_better_recall(
    make_run: MakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run = with_validator(make_run(epochs=9, patience=2), Recalls(0.1, 0.3, 0.2, 0.3, 0.9))
    result = fit(run, resume=False)
    assert (len(result.records), result.best_epoch) == (4, 2)
    assert "stopping early: no better recall for 2 epochs" in caplog.messages


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_stops_the_run_and_the_checkpoint_stays(
    make_run: MakeRun, value: float
) -> None:
    def spoil(call: int, losses: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        return (losses * value if call == 9 else losses), weights  # of 6 batches an epoch

    run = make_run(epochs=3, step=lambda step: Wrapped(step, spoil))
    assert run.batches.count_batches(1) == 6
    with pytest.raises(TrainingError, match=rf"the loss is {value} at step 9 \(epoch 2, users "):
        fit(run, resume=False)
    healthy = make_run(epochs=2)
    assert healthy.store.resume(healthy.trainable).epoch == 1


def test_clipping_bounds_what_a_step_of_sgd_moves(make_run: MakeRun) -> None:
    run = make_run(optimizer="sgd", epochs=1, batch_size=10_000, gradient_clip=1e-3)
    run = TrainingRun(**{**vars(run), "optimizers": run.optimizers[:1]})  # the tables alone
    run = with_validator(run, Recalls(None))
    before = weights_of(run)
    fit(run, resume=False)
    after = weights_of(run)
    moved = (
        sum(float((after[name].double() - before[name].double()).square().sum()) for name in after)
        ** 0.5
    )
    assert 0 < moved <= 0.05 * 1e-3 * (1 + 1e-3)  # learning rate * norm; float32


def test_the_schedule_sets_the_rate_of_each_step(make_run: MakeRun) -> None:
    steps: list[int] = []

    def rate(step: int) -> float:
        steps.append(step)
        return 0.0  # so that nothing moves

    run = make_run(epochs=2, optimizer="sgd")
    run = TrainingRun(**{**vars(run), "schedule": rate, "validator": Recalls(None, None)})
    before = weights_of(run)
    fit(run, resume=False)
    assert steps == list(range(12))
    assert same(before, weights_of(run))


class Stopping(NullTracker):
    """A tracker in whose call the process dies."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self.steps: list[int] = []

    def log_metrics(self, metrics: Any, step: int) -> None:
        self.steps.append(step)
        if step == self._epoch:
            raise StopError


@pytest.mark.parametrize("optimizer", ["rowwise_adagrad", "adagrad", "adam", "lazy_adam", "sgd"])
def test_a_run_stopped_between_epochs_goes_on_as_if_it_had_not(
    make_run: MakeRun, optimizer: str, tmp_path: Any
) -> None:
    whole = make_run(optimizer=optimizer, epochs=4)
    result = fit(whole, resume=False)

    stopped = make_run(optimizer=optimizer, epochs=4, tracker=Stopping(2))
    with pytest.raises(StopError):
        fit(stopped, resume=False)
    tracker = Stopping(99)
    resumed = make_run(optimizer=optimizer, epochs=4, tracker=tracker)
    again = fit(resumed, resume=True)
    assert tracker.steps == [3, 4]
    assert without_rates(again) == without_rates(result)
    assert same(weights_of(resumed), weights_of(whole))
    assert same(resumed.trainable.tensors(), whole.trainable.tensors())


@pytest.mark.parametrize("optimizer", ["rowwise_adagrad", "adam", "lazy_adam"])
@pytest.mark.parametrize("call", [5, 12])  # steps 3 and 9 are saved; 6 batches an epoch
def test_a_run_stopped_in_mid_epoch_goes_on_as_if_it_had_not(
    make_run: MakeRun, optimizer: str, call: int
) -> None:
    whole = make_run(optimizer=optimizer, epochs=2)
    result = fit(whole, resume=False)

    def stop(number: int, losses: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        if number == call:
            raise StopError
        return losses, weights

    stopped = make_run(
        optimizer=optimizer, epochs=2, checkpoint_steps=3, step=lambda step: Wrapped(step, stop)
    )
    with pytest.raises(StopError):
        fit(stopped, resume=False)
    resumed = make_run(optimizer=optimizer, epochs=2, checkpoint_steps=3)
    again = fit(resumed, resume=True)
    assert without_rates(again) == without_rates(result)
    assert same(weights_of(resumed), weights_of(whole))


def test_a_run_stopped_between_the_last_batch_and_the_end_of_its_epoch_goes_on(
    make_run: MakeRun,
) -> None:
    whole = make_run(epochs=2)
    result = fit(whole, resume=False)
    stopped = with_validator(make_run(epochs=2, checkpoint_steps=3), Recalls())
    with pytest.raises(IndexError):  # as it validates
        fit(stopped, resume=False)
    resumed = make_run(epochs=2, checkpoint_steps=3)
    assert without_rates(fit(resumed, resume=True)) == without_rates(result)
    assert same(weights_of(resumed), weights_of(whole))


def test_a_kill_between_the_last_checkpoint_and_the_best_loses_nothing(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    recalls = (0.1, 0.5)  # the second epoch is the best, and the kill comes as it is to be kept
    whole = with_validator(make_run(epochs=2), Recalls(*recalls))
    fit(whole, resume=False)

    stopped = with_validator(make_run(epochs=2), Recalls(*recalls))
    keep, calls = stopped.store.keep_as_best, [1, 2]

    def keep_once() -> None:
        if calls.pop(0) == 2:
            raise StopError
        keep()

    monkeypatch.setattr(stopped.store, "keep_as_best", keep_once)
    with pytest.raises(StopError):
        fit(stopped, resume=False)
    resumed = make_run(epochs=2)
    result = fit(resumed, resume=True)
    assert (result.best_epoch, result.best_recall) == (2, 0.5)
    assert same(weights_of(resumed), weights_of(whole))


def test_a_finished_run_that_is_resumed_gives_the_same_result(make_run: MakeRun) -> None:
    first = make_run(epochs=2)
    result = fit(first, resume=False)
    again = make_run(epochs=2)
    assert fit(again, resume=True) == result
    assert same(weights_of(again), weights_of(first))


def test_resuming_where_no_checkpoint_stands_starts_from_the_beginning(
    make_run: MakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    result = fit(make_run(epochs=1), resume=True)
    assert len(result.records) == 1
    assert "there is no checkpoint yet: starting from the beginning" in caplog.messages


def test_the_model_is_in_training_mode_after_a_validation(make_run: MakeRun) -> None:
    modes: list[bool] = []

    def watch(_: int, losses: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        modes.append(run.step.model.training)
        return losses, weights

    run = make_run(epochs=2, step=lambda step: Wrapped(step, watch))
    fit(run, resume=False)
    assert modes == [True] * 12


def test_a_resumption_with_no_epoch_left_says_so(
    make_run: MakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run = make_run(epochs=3)
    fit(run, resume=False)
    for epochs in (3, 2):
        less = TrainingRun(**{**vars(run), "settings": replace(run.settings, epochs=epochs)})
        caplog.clear()
        assert len(fit(less, resume=True).records) == 3
        [line] = [one.getMessage() for one in caplog.records if "resumed" in one.getMessage()]
        assert line.endswith(
            f"steps and 3 epochs: with trainer.epochs={epochs} none is left to train"
        )
