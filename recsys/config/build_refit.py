"""The second training of a run, on the validation part too."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from recsys.config.build import build_checkpoints, build_products, build_run
from recsys.config.build_warm_start import build_start
from recsys.config.schema_model import ModelConfig
from recsys.config.schema_stages import TrainConfig
from recsys.data import PreparedDataset, count_validation, join_validation
from recsys.foundations import seed_everything
from recsys.models import ModelSpec, TwoTower
from recsys.tracking import NullTracker, Tracker
from recsys.training import FitResult, TrainingRun, fit

log = logging.getLogger(__name__)


class _RefitTracker(NullTracker):
    """Puts the numbers of the second training beside those of the first, as `refit_NAME`."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        """Record numbers at a step."""
        self._tracker.log_metrics({f"refit_{k}": v for k, v in metrics.items()}, step)


def fit_again(
    config: TrainConfig,
    dataset: PreparedDataset,
    *,
    chosen: ModelSpec,
    result: FitResult,
    tracker: Tracker,
    run_dir: Path,
) -> tuple[TwoTower, PreparedDataset]:
    """Train a fresh model on both parts, for as many epochs as were best, with all that was chosen.

    Args:
        config: Of the first training.
        dataset: Of the first training.
        chosen: The first model's specification, with what validation chose.
        result: What the first came to.
        tracker: Of the run.
        run_dir: Of the run; the second one's checkpoints go to `refit` in it.

    Returns:
        The model, and the data set with the events counted that this model met.
    """
    joined = join_validation(dataset)
    log.info(
        "training again, on training and validation together: %s events, %d epoch%s",
        f"{len(joined.train):,}",
        result.best_epoch,
        "" if result.best_epoch == 1 else "s",
    )
    run = _build(config, joined, chosen, tracker, run_dir / "refit")
    run = replace(run, settings=replace(run.settings, epochs=result.best_epoch))
    with build_products(config):
        fit(run, resume=config.resume)
    return run.step.model, count_validation(dataset)


def _build(
    config: TrainConfig,
    joined: PreparedDataset,
    chosen: ModelSpec,
    tracker: Tracker,
    folder: Path,
) -> TrainingRun:
    """Build the second training, whose model has its first values, of `init_from` too."""
    trainer = replace(config.trainer, patience=0, refit=False)
    again = replace(config, model=_settle(config.model, chosen), trainer=trainer)
    seed_everything(config.seed)  # whatever the first training drew
    run = build_run(again, joined, _RefitTracker(tracker), folder)
    nobody = joined.test.take(np.zeros(0, np.int64))  # where it starts was measured before
    build_start(again, folder).begin(run, replace(joined, test=nobody))
    # What was chosen after an epoch shapes no step, and more epochs may choose otherwise.
    return replace(run, store=build_checkpoints(config, joined, folder))


def _settle(model: ModelConfig, chosen: ModelSpec) -> ModelConfig:
    """Put in the place of lists what was chosen of them."""
    if model.ridge.settings[0][0] > 0:
        ridge = replace(
            model.ridge,
            dim=chosen.ridge_dim,
            regularization=chosen.ridge_regularization,
            unobserved=chosen.ridge_unobserved,
            scale=chosen.ridge_scale,
        )
        model = replace(model, ridge=ridge)
    repeats = replace(model.repeats, weight=chosen.repeats_weight, decay=chosen.repeats_decay)
    return replace(model, repeats=repeats)
