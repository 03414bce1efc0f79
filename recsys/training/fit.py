"""The training loop: epochs of steps, validation, checkpoints."""

import logging
import math
import time
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch.optim import Optimizer

from recsys.data import TrainingBatches
from recsys.foundations import Progress, operator_threads
from recsys.models import TwoTower, place_unknown_ids
from recsys.tracking import Tracker
from recsys.training.checkpoint import CheckpointStore, Position, Trainable
from recsys.training.loss_sums import start_sums
from recsys.training.model_step import ModelStep
from recsys.training.schedules import Schedule
from recsys.training.update import update
from recsys.training.validation import Validator

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """Settings of the loop.

    Attributes:
        epochs: Epochs in all, those before a resumption among them.
        patience: Epochs without a better validation recall before stopping; 0: never stop early.
        checkpoint_steps: Steps between checkpoints within an epoch; 0: only at its end.
        gradient_clip: Largest norm over all gradients; 0: none.
        operator_threads: Of each operator of a step.
    """

    epochs: int
    patience: int
    checkpoint_steps: int
    gradient_clip: float
    operator_threads: int = 1


@dataclass(frozen=True)
class FitResult:
    """What training came to.

    Attributes:
        records: One dictionary of numbers for each epoch.
        best_epoch: The epoch, from 1, whose weights the model now has.
        best_recall: Its validation recall; None where nothing was validated.
        validate_at: The k of that recall.
    """

    records: list[dict[str, float]]
    best_epoch: int
    best_recall: float | None
    validate_at: int


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """All that the loop works with.

    Attributes:
        step: The model, its objective and the random stream of the draws.
        batches: The training positives.
        optimizers: Over all of the model's parameters.
        schedule: Share of the learning rate at each step.
        validator: Recall and likelihood on the validation part.
        tracker: Where the numbers of each epoch go.
        store: Checkpoints.
        settings: Of the loop.
        item_counts: Training events of each item, by which unknown ids are placed after each epoch
            where the steps do not teach them (`place_unknown_ids`). None: they are left alone.
    """

    step: ModelStep
    batches: TrainingBatches
    optimizers: list[Optimizer]
    schedule: Schedule
    validator: Validator
    tracker: Tracker
    store: CheckpointStore
    settings: FitSettings
    item_counts: NDArray[np.int64] | None = None

    @property
    def trainable(self) -> Trainable:
        """Give the parts that change."""
        step = self.step
        return Trainable(step.model, self.optimizers, step.objective, step.generator)


def fit(run: TrainingRun, *, resume: bool) -> FitResult:
    """Train, validate after each epoch, keep the best weights.

    Each epoch visits every training event once. A run that was killed and is resumed ends with
    the same numbers as one that was not, on the same machine with the same number of threads.

    Args:
        run: The model and all that trains it.
        resume: Whether to go on from the last checkpoint, if there is one.

    Returns:
        The records; the model has the best epoch's weights.

    Raises:
        TrainingError: The loss is not finite. The last checkpoint stays.
        ConfigError: The checkpoint was trained with other settings or on other data.
        FormatError: The checkpoint is damaged.
    """
    position = Position()
    if resume and run.store.has_last:
        position = run.store.resume(run.trainable)
        _tell_where(position, run.settings.epochs)
    elif resume:
        log.info("there is no checkpoint yet: starting from the beginning")
    while position.epoch < run.settings.epochs and not _is_out_of_patience(run, position):
        rows_per_second = train_epoch(run, position)
        record = _finish_epoch(run, position, rows_per_second)
        run.store.save_last(run.trainable, position)
        if position.is_best:
            run.store.keep_as_best()
        run.tracker.log_metrics(record, step=position.epoch)
    if position.best_epoch:
        run.store.restore_best(run.step.model)
        _restore_chosen(run.step.model, position.records[position.best_epoch - 1])
    return FitResult(
        position.records,
        position.best_epoch or position.epoch,
        position.best_recall,
        run.validator.k,
    )


def _tell_where(position: Position, epochs: int) -> None:
    if position.epoch < epochs:
        log.info("resumed after %d steps, in epoch %d", position.step, position.epoch + 1)
    else:
        words = "resumed after %d steps and %d epochs: with trainer.epochs=%d none is left to train"
        log.info(words, position.step, position.epoch, epochs)


def _restore_chosen(model: TwoTower, record: dict[str, float]) -> None:
    """Give a model what validation chose after the epoch of a record; no part of the weights."""
    scale = record.get("validation_ridge_scale")
    if scale is not None:
        model.set_ridge_scale(scale)
    weight = record.get("validation_repeats_weight")
    if weight is not None:
        model.set_repeats(weight, record["validation_repeats_decay"])


def _is_out_of_patience(run: TrainingRun, position: Position) -> bool:
    patience, waited = run.settings.patience, position.epoch - position.best_epoch
    out = patience > 0 and position.best_epoch > 0 and waited >= patience
    if out:
        log.info("stopping early: no better recall for %d epochs", waited)
    return out


def train_epoch(run: TrainingRun, position: Position) -> float:
    """Run the rest of an epoch, without what follows it.

    Args:
        run: The model and all that trains it.
        position: Where it stands; is moved on batch by batch, but not to the next epoch.

    Returns:
        The rows a second.

    Raises:
        TrainingError: The loss is not finite.
    """
    started = time.perf_counter()
    model, batches, settings = run.step.model, run.batches, run.settings
    model.train()
    if position.batch == 0:
        run.step.objective.start_epoch()
    what, done = f"epoch {position.epoch + 1}/{settings.epochs}", position.rows
    stream = batches.epoch(position.epoch, first_batch=position.batch)
    sums = start_sums(position, model.device)
    bar = Progress(what, batches.num_rows, "rows", done=done)
    with operator_threads(settings.operator_threads), closing(stream), bar:
        for batch in stream:
            losses, weights = run.step(batch)
            total, weight_sum = (losses * weights).sum(), weights.sum()
            sums.add(total, weight_sum, batch)
            update(
                model,
                run.optimizers,
                total,
                weight_sum,
                rate_share=run.schedule(position.step),
                gradient_clip=settings.gradient_clip,
            )
            position.batch, position.step = position.batch + 1, position.step + 1
            position.rows += len(batch.positives)
            bar.advance(len(batch.positives), f"loss {position.mean_loss:.4f}")
            if settings.checkpoint_steps and position.step % settings.checkpoint_steps == 0:
                sums.settle()
                run.store.save_last(run.trainable, position)
    sums.settle()
    return (position.rows - done) / max(time.perf_counter() - started, 1e-9)


def _finish_epoch(run: TrainingRun, position: Position, rate: float) -> dict[str, float]:
    """Validate, write the epoch's record into the position, and move on to the next epoch."""
    position.epoch += 1
    validator, model = run.validator, run.step.model
    if run.item_counts is not None:
        place_unknown_ids(model, run.item_counts)
    draws = run.step.objective.statistics()
    record: dict[str, float] = {
        "epoch": position.epoch,
        "train_loss": position.mean_loss,
        "train_rows": position.rows,
        "temperature": float(model.temperature().detach()),
        "rows_per_second": rate,
        **draws,
    }
    text = f"epoch {position.epoch}: loss {position.mean_loss:.4f}"
    scores = validator.measure(model)
    # Records are JSON, which holds no infinity; log_likelihood says what such a perplexity would.
    record |= {f"validation_{name}": x for name, x in scores.items() if math.isfinite(x)}
    recall = scores.get(f"recall_at_{validator.k}")
    if recall is not None:
        text += f", validation recall@{validator.k} {recall:.4f}"
        if position.best_recall is None or recall > position.best_recall:
            position.best_epoch, position.best_recall = position.epoch, recall
    if "perplexity" in scores:
        text += f", perplexity {scores['perplexity']:.1f}"
    if "ridge_scale" in scores:
        text += f", ridge scale {scores['ridge_scale']:g}"
    if "repeats_weight" in scores:
        text += f", repeats {scores['repeats_weight']:g} at decay {scores['repeats_decay']:g}"
    text += "".join(f", {name.replace('_', ' ')} {x:.4g}" for name, x in draws.items())
    position.records.append(record)
    position.start_epoch()
    log.info("%s, %.0f rows/s", text, rate)
    return record
