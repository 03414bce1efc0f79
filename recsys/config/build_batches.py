"""The bridge from settings to the source of training positives."""

from typing import Any

from recsys.config.schema_stages import TrainConfig
from recsys.data import (
    EventBatches,
    PrefetchedBatches,
    PreparedDataset,
    ProfileBatches,
    SequenceBatches,
    TrainingBatches,
    weigh_by_user,
)
from recsys.foundations import ConfigError, num_threads

_UNITS = {"events": "", "sequences": " stretches", "profiles": " users"}


def build_batches(config: TrainConfig, dataset: PreparedDataset) -> TrainingBatches:
    """Build the source of training positives.

    Raises:
        ConfigError: Dropping the last batch leaves none, or the data cannot serve the examples.
    """
    batches = _build_source(config, dataset)
    depth = config.trainer.prefetch
    if depth is None:
        depth = 1 if num_threads() > 1 else 0
    return PrefetchedBatches(batches, depth=depth) if depth else batches


def _build_source(config: TrainConfig, dataset: PreparedDataset) -> TrainingBatches:
    trainer, history = config.trainer, config.model.user_tower.history
    settings: dict[str, Any] = {
        "clock": dataset.clock,
        # Where the tower reads no history, the bigram still asks for the last item.
        "history_length": 1 if history.encoder == "none" else history.length,
        "batch_size": trainer.batch_size,
        "drop_last": trainer.drop_last,
        "seed": config.seed,
        "shuffle_rows": trainer.shuffle_rows,
    }
    events, ties = weigh_by_user(dataset.train, trainer.user_weighting), config.history.ties
    batches: TrainingBatches
    match trainer.examples:
        case "sequences":
            _check_order(dataset)
            batches = SequenceBatches(events, ties=ties, **settings)
        case "profiles":
            _check_context(config, dataset)
            batches = ProfileBatches(events, **settings)
        case _:
            with_times = history.reads_times(dataset.clock)
            batches = EventBatches(
                events,
                ties=ties,
                with_times=with_times,
                repeats=not dataset.exclude_seen,
                **settings,
            )
    if batches.count_batches(1) == 0:
        raise ConfigError(
            f"trainer.drop_last=true leaves no batch: trainer.batch_size is "
            f"{trainer.batch_size}{_UNITS[trainer.examples]}, the training part has "
            f"{len(dataset.train)} rows."
        )
    return batches


def positives_per_step(config: TrainConfig, dataset: PreparedDataset) -> float:
    """Count the positives of a step, in the mean where batches are not of events."""
    if config.trainer.examples == "events":
        return config.trainer.batch_size
    batches = _build_source(config, dataset)
    return batches.num_rows / batches.count_batches(1)


def _check_order(dataset: PreparedDataset) -> None:
    if dataset.clock == "none":
        raise ConfigError(
            "trainer.examples=sequences needs an order of the events, and this dataset has none: "
            "give dataset.columns.timestamp, or choose events or profiles."
        )


def _check_context(config: TrainConfig, dataset: PreparedDataset) -> None:
    """Check that the user tower reads nothing of a single event."""
    read = config.model.user_tower.context
    names = dataset.context_schema.names if read == "all" else read
    if names:
        raise ConfigError(
            f"trainer.examples=profiles has no context of a single event, such as {names[0]!r}: "
            "set model.user_tower.context=[], or choose events or sequences."
        )
