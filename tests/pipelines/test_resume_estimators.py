"""What an estimator learns while it trains is part of the checkpoint, whatever it is.

The loop alone runs here, on runs built from settings: nothing is indexed or evaluated.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from recsys.config import TrainConfig, build, compose_config
from recsys.config.build_batches import build_batches
from recsys.config.build_dataset import find_or_prepare
from recsys.data import PreparedDataset, TrainingBatch, read_prepared
from recsys.foundations import ConfigError, seed_everything
from recsys.tracking import null_tracker
from recsys.training import ModelStep, TrainingRun, fit

SMALL = {
    "dataset.num_users": 50,
    "dataset.num_items": 40,
    "dataset.num_interactions": 700,
    "dataset.num_clusters": 4,
    "model.embedding_dim": 8,
    "trainer.epochs": 2,
    "trainer.batch_size": 64,
    "trainer.checkpoint_steps": 4,
}
MIXED = {"loss": "mixed", "loss.num_sampled": 8}
ADAPTIVE = {"loss": "importance_sampling", "loss.num_sampled": 8, "loss.min_ess": 6}
ADAPTIVE |= {"loss.max_samples": 40}
KINDS: dict[str, dict[str, Any]] = {
    "exact": {"loss": "in_batch"},
    "streaming": {"loss": "in_batch", "popularity": "streaming", "popularity.num_buckets": 64},
    "count_min": {"loss": "in_batch", "popularity": "count_min", "popularity.num_buckets": 16},
    "learned_unigram": {
        "loss": "sampled_softmax",
        "loss.num_sampled": 8,
        "sampler": "learned_unigram",
        "sampler.mode": "deduplicated",
    },
    "memory": MIXED | {"loss.streams": ["in_batch", "memory"], "streams.memory.size": 150},
    "hard": MIXED | {"loss.streams": ["in_batch", "hard"], "streams.hard.num_top": 5},
    "every stream": MIXED
    | {"loss.streams": ["memory", "hard", "drawn", "in_batch"], "popularity": "streaming"}
    | {"streams.hard.num_top": 5, "streams.hard.refresh_steps": 7, "streams.hard.num_sampled": 2}
    | {"popularity.num_buckets": 64, "streams.memory.size": 150, "sampler": "learned_unigram"},
    "adaptive": ADAPTIVE,
    "adaptive by query": ADAPTIVE | {"sampler": "learned_unigram", "sampler.mode": "per_query"},
    "bigram": {"loss": "sampled_softmax", "loss.num_sampled": 8, "sampler": "bigram"},
    "metropolis_hastings": {"loss": "metropolis_hastings", "loss.num_sampled": 40},
    "monte_carlo": {"loss": "monte_carlo", "loss.num_sampled": 4},
    "sequences": MIXED
    | {"trainer.examples": "sequences", "model.user_tower.history.encoder": "gru"}
    | {"model.user_tower.history.length": 5, "trainer.batch_size": 14, "popularity": "streaming"}
    | {"popularity.num_buckets": 64},
    "profiles": {"loss": "in_batch", "trainer.examples": "profiles", "trainer.batch_size": 7}
    | {"model.user_tower.history.encoder": "attention"}
    | {"model.user_tower.history.num_interests": 2},
}

Compose = Callable[..., TrainConfig]


@pytest.fixture(scope="module")
def compose(tiny: dict[str, Any]) -> Compose:
    """Give a function from a kind, and what changes, to settings."""

    def from_kind(kind: dict[str, Any], **changes: Any) -> TrainConfig:
        base = {key: value for key, value in tiny.items() if not key.startswith("loss")}
        return compose_config("train", TrainConfig, base | SMALL | kind | changes)

    return from_kind


@pytest.fixture(scope="module")
def dataset(compose: Compose) -> PreparedDataset:
    """Prepare the made-up data of all runs."""
    return read_prepared(find_or_prepare(compose({})))


class KilledError(Exception):
    """Stands for a kill at this moment."""


class Killing:
    """A step that ends the run as it is called for the n-th time."""

    def __init__(self, step: ModelStep, call: int) -> None:
        self._step, self._left = step, call
        self.model, self.objective, self.generator = step.model, step.objective, step.generator

    def __call__(self, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        self._left -= 1
        if self._left == 0:
            raise KilledError
        return self._step(batch)


def make_run(config: TrainConfig, dataset: PreparedDataset, folder: Path) -> TrainingRun:
    seed_everything(config.seed)
    return build.build_run(config, dataset, null_tracker(), folder)


def train(config: TrainConfig, dataset: PreparedDataset, folder: Path, **how: bool) -> Any:
    """Train; give the epochs' numbers but for the clock's, and all that a checkpoint holds."""
    run = make_run(config, dataset, folder)
    records = fit(run, resume=how.get("resume", False)).records
    for record in records:
        record.pop("rows_per_second")
    return records, run.trainable.tensors()


def kill(config: TrainConfig, dataset: PreparedDataset, folder: Path, *, call: int) -> None:
    run = make_run(config, dataset, folder)
    step: Any = Killing(run.step, call)
    with pytest.raises(KilledError):
        fit(TrainingRun(**vars(run) | {"step": step}), resume=False)


HELD = {
    "exact": {"statistics.sample_size"},
    "streaming": {"popularity.gap", "popularity.share", "popularity.last_seen"},
    "count_min": {"popularity.counts"},
    "learned_unigram": {"sampler.counts"},
    "every stream": {
        *("sampler.0.rows", "sampler.0.ages", "sampler.0.vectors", "sampler.2.counts"),
        *("sampler.1.steps", "sampler.1.vectors", "popularity.gap"),
    },
    "adaptive": {"statistics.effective_sample_size", "statistics.full_softmax_share"},
    "adaptive by query": {"sampler.counts", "statistics.sample_size"},
    "bigram": {"statistics.sample_size"},
    "metropolis_hastings": {"statistics.acceptance_rate"},
    "monte_carlo": {"statistics.sample_size"},
    "sequences": {"popularity.gap"},
    "profiles": {"statistics.sample_size"},
}


@pytest.mark.parametrize("kind", HELD)
def test_a_run_killed_in_mid_epoch_and_resumed_is_one_that_was_not(
    compose: Compose, dataset: PreparedDataset, tmp_path: Path, kind: str
) -> None:
    config = compose(KINDS[kind])
    records, tensors = train(config, dataset, tmp_path / "whole")
    assert 6 < build_batches(config, dataset).count_batches(1) < 12  # steps an epoch
    kill(config, dataset, tmp_path / "killed", call=15)  # in the second epoch, as is step 12
    again, resumed = train(config, dataset, tmp_path / "killed", resume=True)
    assert again == records
    assert resumed.keys() == tensors.keys()
    different = [name for name in tensors if not torch.equal(resumed[name], tensors[name])]
    assert different == []
    assert {f"objective.{name}" for name in HELD[kind]} <= tensors.keys()
    assert "sample_size" in records[0]


OTHERS = [
    # from, to, the sentence
    ("exact", {"loss": "mixed"}, "loss is 'mixed', .* trained with 'in_batch'"),
    ("exact", {"popularity": "count_min"}, "popularity is 'count_min', .* trained with 'exact'"),
    (
        "streaming",
        {"popularity.step_size": 0.2},
        r"popularity\.step_size is 0\.2, .* trained with 0\.05",
    ),
    (
        "learned_unigram",
        {"sampler": "uniform"},
        "sampler is 'uniform', .* trained with 'learned_unigram'",
    ),
    (
        "monte_carlo",
        {"loss": "exact_importance"},  # which has the same settings
        "loss is 'exact_importance', .* trained with 'monte_carlo'",
    ),
    ("memory", {"streams.memory.size": 99}, r"streams\.memory\.size is 99, .* trained with 150"),
    (
        "every stream",
        {"loss.streams": ["in_batch", "drawn"]},
        r"loss\.streams is \['in_batch', 'drawn'\], .* trained with \['memory', 'hard'",
    ),
    ("hard", {"index": "hnsw"}, "index.kind is 'hnsw', .* trained with 'auto'"),
]


@pytest.mark.parametrize(("kind", "changes", "words"), OTHERS)
def test_a_checkpoint_of_another_loss_sampler_or_popularity_is_refused_with_both_names(
    compose: Compose,
    dataset: PreparedDataset,
    tmp_path: Path,
    kind: str,
    changes: dict[str, Any],
    words: str,
) -> None:
    settings = KINDS[kind]
    kill(compose(settings, **{"trainer.checkpoint_steps": 1}), dataset, tmp_path, call=2)
    if "loss" in changes and changes["loss"] == "mixed":
        changes = changes | {"loss.num_sampled": 8}
    if "popularity" in changes:
        settings = {k: v for k, v in settings.items() if not k.startswith("popularity")}
    changed = make_run(
        compose(settings, **changes, **{"trainer.checkpoint_steps": 1}), dataset, tmp_path
    )
    with pytest.raises(ConfigError, match=f"resume: {words}"):
        changed.store.resume(changed.trainable)


def test_another_index_is_fine_where_no_step_searches_it(
    compose: Compose, dataset: PreparedDataset, tmp_path: Path
) -> None:
    kill(compose(KINDS["exact"]), dataset, tmp_path, call=6)
    other = make_run(compose(KINDS["exact"], index="hnsw"), dataset, tmp_path)
    assert other.store.resume(other.trainable).step == 4
