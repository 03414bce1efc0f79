"""The bridge from a finished run to the one that trains again, on the validation part too."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from recsys.config.build import build_run
from recsys.config.build_warm_start import build_start
from recsys.config.schema_model import ModelConfig
from recsys.config.schema_stages import TrainConfig
from recsys.data import PreparedDataset
from recsys.foundations import seed_everything
from recsys.models import ModelSpec
from recsys.tracking import NullTracker, Tracker
from recsys.training import FitResult, TrainingRun

log = logging.getLogger(__name__)


class _RefitTracker(NullTracker):
    """Puts the numbers of the second training beside those of the first, as `refit_NAME`."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        """Record numbers at a step."""
        self._tracker.log_metrics({f"refit_{k}": v for k, v in metrics.items()}, step)


def build_refit(
    config: TrainConfig,
    joined: PreparedDataset,
    *,
    chosen: ModelSpec,
    result: FitResult,
    tracker: Tracker,
    run_dir: Path,
) -> TrainingRun:
    """Build the second training: a fresh model, for as many epochs as were best, all choices made.

    Args:
        config: Of the first.
        joined: What it trains on, as `join_validation` gives it.
        chosen: The first model's specification, with what validation chose.
        result: What the first came to.
        tracker: Of the run.
        run_dir: Of the run; the second one's checkpoints go to `refit` in it.

    Returns:
        The run, whose model has its first values, of `init_from` too.
    """
    folder = run_dir / "refit"
    trainer = replace(config.trainer, patience=0, refit=False)
    again = replace(config, model=_settle(config.model, chosen), trainer=trainer)
    seed_everything(config.seed)  # whatever the first training drew
    log.info(
        "training again, on training and validation together: %d events, %d epochs",
        len(joined.train),
        result.best_epoch,
    )
    run = build_run(again, joined, _RefitTracker(tracker), folder)
    build_start(again, folder).begin(run, joined)
    return replace(run, settings=replace(run.settings, epochs=result.best_epoch))


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
