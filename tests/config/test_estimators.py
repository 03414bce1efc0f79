"""Every preset of an estimator composes, builds and trains; what data cannot serve is refused."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from recsys.config import TrainConfig, build, compose_config
from recsys.config.build_batches import build_batches
from recsys.config.build_dataset import find_or_prepare
from recsys.config.build_objective import build_objective
from recsys.data import PreparedDataset, read_prepared
from recsys.foundations import ConfigError, make_generator, seed_everything
from recsys.sampling import PerQuerySampler, PopularityProposal, WithReplacementSampler
from recsys.training import ModelStep, SampledObjective, sampled_losses

PRESETS = Path(__file__).parents[2] / "conf" / "experiment" / "estimator"
NAMES = sorted(path.stem for path in PRESETS.glob("*.yaml"))
SMALL = {
    "dataset": "synthetic",
    "dataset.num_users": 30,
    "dataset.num_items": 25,
    "dataset.num_interactions": 300,
    "dataset.num_clusters": 3,
    "model.embedding_dim": 8,
    "trainer.batch_size": 32,
    "streams.hard.num_top": 5,
    "tracking": "none",
    "threads": 1,
}

Compose = Callable[[dict[str, Any]], TrainConfig]


@pytest.fixture(scope="module")
def compose(tmp_path_factory: pytest.TempPathFactory) -> Compose:
    """Give a function from settings to those of a small run."""
    root = str(tmp_path_factory.mktemp("prepared"))

    def small(settings: dict[str, Any]) -> TrainConfig:
        return compose_config(
            "train", TrainConfig, SMALL | {"dataset.prepared_root": root} | settings
        )

    return small


@pytest.fixture(scope="module")
def dataset(compose: Compose) -> PreparedDataset:
    """Prepare the made-up data of all runs."""
    return read_prepared(find_or_prepare(compose({})))


def test_there_is_a_preset_for_each_loss() -> None:
    assert len(NAMES) == 24
    losses = {path.stem for path in (PRESETS.parents[1] / "loss").glob("*.yaml")}
    assert len(losses) == 13
    assert losses <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_composes_builds_and_trains(
    compose: Compose, dataset: PreparedDataset, name: str
) -> None:
    config = compose({"experiment": f"estimator/{name}"})
    seed_everything(config.seed)
    model = build.build_model(config, dataset)
    objective = build_objective(config, dataset, model)
    step = ModelStep(model, objective, dataset.users.features, make_generator(0, "draws"))
    optimizers = build.build_optimizer(config.optimizer, model)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    batch = next(build_batches(config, dataset).epoch(0))

    losses, weights = step(batch)
    assert losses.shape == weights.shape == (len(batch.positives),)
    losses.mean().backward()
    for optimizer in optimizers:
        optimizer.step()

    after = model.state_dict()
    assert all(torch.isfinite(value).all() for value in after.values())
    moved = {key.split(".")[0] for key in after if not torch.equal(after[key], before[key])}
    assert moved >= {"user_tower", "item_tower"}
    visits_all = name in ("full_softmax", "full_logistic")
    statistics = objective.statistics()
    assert (statistics == {}) == visits_all
    assert visits_all or statistics["sample_size"] >= 1
    objective.load_state_dict(objective.state_dict())


WANTED: dict[str, Any] = {
    "negative_sampling": sampled_losses.negative_sampling,
    "noise_contrastive": sampled_losses.noise_contrastive,
    "sampled_logistic": sampled_losses.sampled_logistic,
    "bpr": sampled_losses.bpr,
    "sampled_softmax": partial(sampled_losses.standard_softmax, remove_accidental_hits=True),
    "uncorrected": partial(sampled_losses.uncorrected_softmax, remove_accidental_hits=True),
    "refined": sampled_losses.refined_softmax,
}


@pytest.mark.parametrize("name", WANTED)
def test_a_preset_trains_by_the_loss_of_its_name(
    compose: Compose, dataset: PreparedDataset, name: str
) -> None:
    config: Any = compose({"experiment": f"estimator/{name}", "loss.num_sampled": 9})
    model = build.build_model(config, dataset).eval()  # so that no item is dropped at random
    counts = dataset.items.counts[: dataset.num_items]
    proposal = PopularityProposal(counts, alpha=0.75)
    by_query = config.sampler.mode == "per_query"
    sampler = (PerQuerySampler if by_query else WithReplacementSampler)(proposal, num_sampled=9)
    features = dataset.items.features.take(np.arange(dataset.num_items))
    batch = next(build_batches(config, dataset).epoch(0))
    found, expected = (
        ModelStep(model, objective, dataset.users.features, make_generator(0, "draws"))(batch)[0]
        for objective in (
            build_objective(config, dataset, model),
            SampledObjective(sampler, features, WANTED[name]),
        )
    )
    torch.testing.assert_close(found, expected)


SHARED: dict[str, dict[str, Any]] = {
    "mixed": {},
    "in_batch": {"loss": "in_batch"},
    "in_batch_stream": {"loss.streams": ["in_batch", "memory"], "sampler": "bigram"},
    "refined": {"loss": "sampled_softmax", "loss.log_q": "refined"},
    "uncorrected": {"loss": "sampled_softmax", "loss.log_q": "none"},
    "full_softmax": {"loss": "full_softmax", "loss.label_smoothing": 0.1},
    "full_logistic": {"loss": "full_logistic"},
    "negative_sampling": {"loss": "negative_sampling"},
    "noise_contrastive": {"loss": "noise_contrastive"},
    "sampled_logistic": {"loss": "sampled_logistic"},
}


@pytest.mark.parametrize("name", SHARED)
def test_products_are_rounded_where_that_is_set_and_a_batch_shares_them(
    compose: Compose, dataset: PreparedDataset, name: str
) -> None:
    losses = {}
    for precision in ("float32", "bfloat16"):
        config: Any = compose(SHARED[name] | {"trainer.precision": precision})
        torch.manual_seed(0)
        model = build.build_model(config, dataset).eval()
        objective = build_objective(config, dataset, model)
        step = ModelStep(model, objective, dataset.users.features, make_generator(0, "draws"))
        losses[precision], _ = step(next(build_batches(config, dataset).epoch(0)))
    assert not torch.equal(losses["bfloat16"], losses["float32"])
    torch.testing.assert_close(losses["bfloat16"], losses["float32"], rtol=0.02, atol=0.02)


MODES = {
    "with_replacement": (12, 12),
    "per_query": (12, 12),
    "distinct": (12, 12),
    "deduplicated": (1, 12),
    "independent": (1, 24),  # a Poisson number of draws: 12 on average
}


@pytest.mark.parametrize("sampler", ["uniform", "log_uniform", "popularity", "learned_unigram"])
def test_every_sampler_draws_in_every_mode(
    compose: Compose, dataset: PreparedDataset, sampler: str
) -> None:
    settings = {"loss": "sampled_softmax", "loss.num_sampled": 12, "sampler": sampler}
    config: Any = compose(settings)
    model = build.build_model(config, dataset)
    batch = next(build_batches(config, dataset).epoch(0))
    for mode, (least, most) in MODES.items():
        config.sampler.mode = mode
        objective = build_objective(config, dataset, model)
        step = ModelStep(model, objective, dataset.users.features, make_generator(0, "draws"))
        losses, _ = step(batch)
        assert torch.isfinite(losses).all()
        assert least <= objective.statistics()["sample_size"] <= most


REFUSED = [
    (
        {"loss": "sampled_softmax", "sampler.mode": "distinct", "loss.num_sampled": 13},
        "sampler.mode=distinct draws until loss.num_sampled=13 items differ; it must be at most "
        "half of the 25 items that can be drawn, 12.",
    ),
    (
        {"loss.streams": ["in_batch", "hard"], "streams.hard.num_top": 26},
        "streams.hard.num_top must be at most the number of items, 25, got 26.",
    ),
]


@pytest.mark.parametrize(("settings", "words"), REFUSED)
def test_what_the_data_is_too_small_for_is_refused(
    compose: Compose, dataset: PreparedDataset, settings: dict[str, Any], words: str
) -> None:
    assert dataset.num_items == 25
    config = compose(settings)
    with pytest.raises(ConfigError) as refusal:
        build_objective(config, dataset, build.build_model(config, dataset))
    assert str(refusal.value) == words


def make_table(tmp_path: Path, **settings: Any) -> tuple[Any, PreparedDataset]:
    """Prepare a log of 12 users without a clock, and a catalogue of 40 items, 6 of them in it."""
    log = [(f"u{user}", f"i{(user + step) % 6}") for user in range(12) for step in range(4)]
    pd.DataFrame(log, columns=["user_id", "item_id"]).to_parquet(tmp_path / "log.parquet")
    items = pd.DataFrame([(f"i{item}", f"g{item % 3}") for item in range(40)])
    items.columns = pd.Index(["item_id", "genre"])
    items.to_parquet(tmp_path / "items.parquet")
    config = compose_config(
        "train",
        TrainConfig,
        {
            "dataset": "table",
            "dataset.interactions": str(tmp_path / "log.parquet"),
            "dataset.items": str(tmp_path / "items.parquet"),
            "dataset.prepared_root": str(tmp_path / "prepared"),
            "split": "random",
            "+features.items.genre": "categorical",
            "tracking": "none",
            **settings,
        },
    )
    return config, read_prepared(find_or_prepare(config))


def test_a_bigram_sampler_needs_an_order(tmp_path: Path) -> None:
    config, dataset = make_table(tmp_path, sampler="bigram")
    assert dataset.clock == "none"
    with pytest.raises(ConfigError, match=r"sampler=bigram needs an order .* has none: give datas"):
        build_objective(config, dataset, build.build_model(config, dataset))


def test_items_without_events_are_no_items_to_draw_until_they_differ(tmp_path: Path) -> None:
    settings = {"loss": "sampled_softmax", "loss.num_sampled": 4, "sampler.mode": "distinct"}
    config, dataset = make_table(tmp_path, **settings)
    assert (dataset.num_items, int((dataset.items.counts > 0).sum())) == (40, 6)
    with pytest.raises(ConfigError, match="at most half of the 6 items that can be drawn, 3"):
        build_objective(config, dataset, build.build_model(config, dataset))
    config.sampler.alpha = 0.0  # every item alike
    build_objective(config, dataset, build.build_model(config, dataset))
