"""The bridge from settings to the benchmark of whole trainings."""

import logging
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from recsys.benchmark import (
    NaiveSettings,
    NaiveTraining,
    PeerIals,
    PeerSettings,
    RecallJudge,
    TrainPlan,
    TrainResult,
    measure_train,
    peer_is_missing,
    process_peak,
)
from recsys.benchmark.train import HISTORY, NAIVE, PEER, TO_RECALL
from recsys.config.build import build_run
from recsys.config.build_dataset import build_prepared
from recsys.config.load import compose_config
from recsys.config.schema_benchmark import BenchmarkConfig
from recsys.config.schema_stages import TrainConfig
from recsys.data import PreparedDataset, read_prepared
from recsys.foundations import available_cores, seed_everything
from recsys.models import TwoTower
from recsys.tracking import null_tracker
from recsys.training import Position, TrainingRun, train_epoch

log = logging.getLogger(__name__)


class BenchmarkTraining:
    """A training of a preset, epoch by epoch, without validation and checkpoints.

    Args:
        config: The settings.
        dataset: Prepared by them.
        folder: Where checkpoints would go.
    """

    def __init__(self, config: TrainConfig, dataset: PreparedDataset, folder: Path) -> None:
        self._config, self._dataset, self._folder = config, dataset, folder
        self._position, self._run = Position(), self._build()

    @property
    def num_examples(self) -> int:
        """Count the positives of an epoch."""
        return self._run.batches.num_rows

    @property
    def model(self) -> TwoTower:
        """Give the model."""
        return self._run.step.model

    def begin(self) -> None:
        """Begin anew."""
        self._position, self._run = Position(), self._build()

    def run_epoch(self) -> None:
        """Train for an epoch; beyond the last one the learning rate stays what it was there."""
        train_epoch(self._run, self._position)
        self._position.epoch += 1
        self._position.start_epoch()

    def _build(self) -> TrainingRun:
        seed_everything(self._config.seed)
        return build_run(self._config, self._dataset, null_tracker(), self._folder)


def run_train_benchmark(config: BenchmarkConfig) -> TrainResult:
    """Prepare the log twice in a temporary folder, and measure the trainings on it."""
    with tempfile.TemporaryDirectory(prefix="recsys-benchmark-") as name:
        folder = Path(name)
        build_prepared(history_config(config), folder / "history")
        build_prepared(profile_config(config), folder / "profile")
        return measure_train(_plan(config, folder))


def _plan(config: BenchmarkConfig, folder: Path) -> TrainPlan:
    sizes, history, profile = config.train, history_config(config), profile_config(config)
    timed = _as_large(profile, history)
    events, users = read_prepared(folder / "history"), read_prepared(folder / "profile")
    missing = peer_is_missing()
    if missing is not None:
        log.warning("implicit's iALS is left out: %s", missing)
    jobs: dict[str, Callable[[int], object]] = {
        HISTORY: partial(_train_history, config, folder),
        NAIVE: partial(_train_naive, config, folder),
        TO_RECALL: partial(_train_profile, config, folder),
        PEER: partial(_fit_peer, config, folder),
    }
    return TrainPlan(
        settings={key: value for key, value in vars(sizes).items() if key != "interactions"},
        history=BenchmarkTraining(history, events, folder),
        profiles={
            size: BenchmarkTraining(_of_batches(timed, size), users, folder)
            for size in sorted({sizes.profile_batch_size, sizes.profile_large_batch_size})
        },
        climbing=BenchmarkTraining(profile, users, folder),
        naive=_build_naive(config, history, events),
        naive_steps=sizes.naive_steps,
        naive_batch_size=sizes.batch_size,
        epochs=sizes.profile_epochs,
        judge=RecallJudge(users, sizes.k),
        peer=_build_peer(config, users) if missing is None else None,
        peaks={name: partial(_peak_of, job) for name, job in jobs.items()},
        rounds=config.rounds,
    )


def history_config(config: BenchmarkConfig) -> TrainConfig:
    """Give the settings of the pooled history tower: experiment=history on shared negatives."""
    sizes = config.train
    return _compose(
        config,
        {
            "experiment": "history",
            "split": "leave_last_out",
            "loss": "sampled_softmax",
            "loss.num_sampled": sizes.num_sampled,
            "sampler": "popularity",
            "model.embedding_dim": sizes.embedding_dim,
            "optimizer.learning_rate": sizes.learning_rate,
            "trainer.batch_size": sizes.batch_size,
        },
    )


def profile_config(config: BenchmarkConfig) -> TrainConfig:
    """Give the settings of the profile tower: experiment=general without its ridge part.

    Users and items share a table, which row-wise Adagrad trains: with that it learns in a quarter
    of the epochs, without the ridge part to as good an end.
    """
    sizes = config.train
    rating = {} if sizes.interactions is None else {"dataset.min_rating": sizes.min_rating}
    return _compose(
        config,
        {
            "experiment": "general",
            "split": "strong_generalization",
            "split.fold_in_order": "random",
            "dataset.min_user_interactions": 5,
            "model.ridge.dim": 0,
            "model.embedding_dim": sizes.profile_dim,
            "model.user_tower.history.table": "shared",
            "model.user_tower.history.dropout": sizes.profile_dropout,
            "loss.label_smoothing": sizes.profile_smoothing,
            "optimizer": "rowwise_adagrad",
            "optimizer.learning_rate": sizes.profile_learning_rate,
            "optimizer.weight_decay": sizes.profile_weight_decay,
            "trainer.batch_size": sizes.profile_batch_size,
            "trainer.epochs": sizes.profile_epochs,
        }
        | rating,
    )


def _as_large(config: TrainConfig, other: TrainConfig) -> TrainConfig:
    model = replace(config.model, embedding_dim=other.model.embedding_dim)
    return replace(config, model=model)


def _of_batches(config: TrainConfig, batch_size: int) -> TrainConfig:
    return replace(config, trainer=replace(config.trainer, batch_size=batch_size))


def _compose(config: BenchmarkConfig, settings: dict[str, Any]) -> TrainConfig:
    sizes = config.train
    source: dict[str, Any] = {"dataset": "table", "dataset.interactions": sizes.interactions}
    if sizes.interactions is None:
        source = {
            "dataset": "synthetic",
            "dataset.num_users": sizes.num_users,
            "dataset.num_items": sizes.num_items,
            "dataset.num_interactions": sizes.num_interactions,
            "dataset.num_clusters": min(20, sizes.num_items),
        }
    common = {"features": "none", "tracking": "none", "seed": config.seed}
    return compose_config("train", TrainConfig, source | common | settings)


def _build_naive(
    config: BenchmarkConfig, history: TrainConfig, events: PreparedDataset
) -> NaiveTraining:
    pooled = history.model.user_tower.history
    settings = NaiveSettings(
        dim=history.model.embedding_dim,
        length=pooled.length,
        decay=pooled.decay,
        exponent=pooled.exponent,
        dropout=pooled.dropout,
        batch_size=history.trainer.batch_size,
        num_sampled=config.train.num_sampled,
        alpha=vars(history.sampler)["alpha"],
    )
    return NaiveTraining(events.train, events.items.counts[: events.num_items], settings)


def _build_peer(config: BenchmarkConfig, users: PreparedDataset) -> PeerIals:
    settings = PeerSettings(
        factors=config.train.peer_factors,
        regularization=config.train.peer_regularization,
        alpha=config.train.peer_alpha,
        iterations=config.train.peer_iterations,
        threads=available_cores() if config.threads is None else config.threads,
    )
    return PeerIals(users.train, users.num_items, settings, config.seed)


def _peak_of(job: Callable[[int], object], epochs: int) -> int:
    return process_peak(partial(job, epochs))


def _train_history(config: BenchmarkConfig, folder: Path, _: int) -> None:
    """Read the data and train for an epoch, in a process of its own."""
    dataset = read_prepared(folder / "history")
    BenchmarkTraining(history_config(config), dataset, folder).run_epoch()


def _train_naive(config: BenchmarkConfig, folder: Path, _: int) -> None:
    """Read the data and take some steps, likewise."""
    dataset = read_prepared(folder / "history")
    _build_naive(config, history_config(config), dataset)(config.train.naive_steps)


def _train_profile(config: BenchmarkConfig, folder: Path, epochs: int) -> None:
    """Read the data, train for so many epochs and judge the recall, likewise."""
    dataset = read_prepared(folder / "profile")
    training = BenchmarkTraining(profile_config(config), dataset, folder)
    for _ in range(epochs):
        training.run_epoch()
    RecallJudge(dataset, config.train.k).of_model(training.model)


def _fit_peer(config: BenchmarkConfig, folder: Path, _: int) -> None:
    """Read the data, fit and judge the recall, likewise."""
    dataset = read_prepared(folder / "profile")
    judge, peer = RecallJudge(dataset, config.train.k), _build_peer(config, dataset)
    peer.fit()
    judge.of_lists(peer.top(judge.seen, judge.k))
