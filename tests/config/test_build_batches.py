"""From settings to the source of training positives: which one, with what, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recsys.config import TrainConfig, build, compose_config
from recsys.config.build_batches import build_batches, positives_per_step
from recsys.config.build_dataset import find_or_prepare
from recsys.config.build_objective import build_objective
from recsys.data import PreparedDataset, read_prepared
from recsys.foundations import ConfigError, make_generator
from recsys.training import ModelStep

NUM_USERS = 9
SEQUENCES = {"trainer.examples": "sequences", "model.user_tower.history.encoder": "gru"}
PROFILES = {"trainer.examples": "profiles"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a log in which user u has u + 4 events, and an hour with each."""
    path = tmp_path_factory.mktemp("log")
    log = [
        (f"u{user}", f"i{(user * 3 + step) % 7}", 1_000_000_000 + step, str(step % 3))
        for user in range(NUM_USERS)
        for step in range(user + 4)
    ]
    columns = ["user_id", "item_id", "timestamp", "hour"]
    pd.DataFrame(log, columns=columns).to_parquet(path / "log.parquet")
    return path


def compose(folder: Path, settings: dict[str, Any], *, clock: bool = True) -> TrainConfig:
    fixed: dict[str, Any] = {
        "dataset": "table",
        "dataset.interactions": str(folder / "log.parquet"),
        "dataset.prepared_root": str(folder / "prepared"),
        "split": "leave_last_out" if clock else "random",
        "model.user_tower.history.length": 4,
        "trainer.batch_size": 3,
        "tracking": "none",
    }
    if not clock:
        fixed["dataset.columns.timestamp"] = None
    return compose_config("train", TrainConfig, fixed | settings)


def read(config: TrainConfig) -> PreparedDataset:
    return read_prepared(find_or_prepare(config))


@pytest.mark.parametrize("settings", [{}, SEQUENCES, PROFILES])
def test_every_kind_of_example_visits_all_training_events(
    folder: Path, settings: dict[str, Any]
) -> None:
    config = compose(folder, settings)
    dataset = read(config)
    batches = list(build_batches(config, dataset).epoch(0))
    positives = np.concatenate([batch.positives for batch in batches])
    users = np.concatenate([batch.positive_users for batch in batches])
    train = dataset.train
    assert sorted(zip(users, positives, strict=True)) == sorted(
        zip(train.users, train.items, strict=True)
    )
    assert positives_per_step(config, dataset) == pytest.approx(
        3 if settings == {} else len(train) / len(batches)
    )


@pytest.mark.parametrize("settings", [{}, SEQUENCES, PROFILES])
def test_a_thread_makes_the_same_batches_and_pools_other_ones_of_all_events(
    folder: Path, settings: dict[str, Any]
) -> None:
    def positives(**changes: Any) -> list[list[int]]:
        config = compose(folder, settings | {f"trainer.{k}": v for k, v in changes.items()})
        return [batch.positives.tolist() for batch in build_batches(config, read(config)).epoch(0)]

    usual = positives()
    assert positives(prefetch=2) == usual
    assert positives(shuffle_rows=200) == usual
    pools = positives(shuffle_rows=2)
    assert pools != usual
    assert sorted(np.concatenate(pools)) == sorted(np.concatenate(usual))


def test_histories_that_no_tower_reads_are_one_item_long(folder: Path) -> None:
    unread = {"model": "factorization"}
    for settings, length in (({}, 4), (unread, 1)):
        config = compose(folder, settings)
        batch = next(iter(build_batches(config, read(config)).epoch(0)))
        assert batch.histories.shape == (3, length)


def test_batches_are_of_events_stretches_or_users(folder: Path) -> None:
    first = {}
    for name, settings in (("events", {}), ("sequences", SEQUENCES), ("profiles", PROFILES)):
        config = compose(folder, settings)
        first[name] = next(iter(build_batches(config, read(config)).epoch(0)))
    assert len(first["events"].positives) == len(first["events"].histories) == 3
    assert len(first["sequences"].histories) == 3
    assert len(first["sequences"].users) == len(first["sequences"].positives) > 3
    assert len(first["profiles"].users) == 3 < len(first["profiles"].positives)
    assert not first["events"].is_grouped
    assert first["sequences"].is_grouped
    assert first["profiles"].is_grouped


@pytest.mark.parametrize("settings", [{}, SEQUENCES, PROFILES])
def test_users_are_weighed_as_set(folder: Path, settings: dict[str, Any]) -> None:
    config = compose(folder, settings | {"trainer.user_weighting": 1.0})
    sums = np.zeros(NUM_USERS)
    for batch in build_batches(config, read(config)).epoch(0):
        assert batch.weights is not None
        np.add.at(sums, batch.positive_users, batch.weights)
    assert sums == pytest.approx(np.full(NUM_USERS, sums.mean()), rel=1e-5)


def test_events_bring_the_times_of_their_histories_where_they_are_read(folder: Path) -> None:
    causal = {"model.user_tower.history.encoder": "gru"}
    for settings, there in ((causal | {GAPS: False}, False), (causal, True)):
        config = compose(folder, settings)
        batch = next(iter(build_batches(config, read(config)).epoch(0)))
        assert (batch.times is not None) == there


GAPS = "model.user_tower.history.time_gaps"


def test_of_the_positives_of_stretches_and_users_so_many_are_candidates_as_set(
    folder: Path,
) -> None:
    for settings, expected in (({}, 3), (SEQUENCES, 5), (PROFILES, 5)):
        config = compose(folder, settings | {"loss": "in_batch", "streams.in_batch.size": 5})
        dataset = read(config)
        model = build.build_model(config, dataset)
        objective = build_objective(config, dataset, model)
        step = ModelStep(model, objective, dataset.users.features, make_generator(0))
        sizes = []
        for batch in build_batches(config, dataset).epoch(0):
            objective.start_epoch()
            step(batch)
            sizes.append(objective.statistics()["sample_size"])
        assert max(sizes) == expected


@pytest.mark.parametrize(
    ("settings", "clock", "words"),
    [
        (SEQUENCES, False, "trainer.examples=sequences needs an order of the events, and this"),
        (
            PROFILES | {"+features.context.hour": {}},
            True,
            "trainer.examples=profiles has no context of a single event, such as 'hour': set",
        ),
        (
            PROFILES | {"trainer.drop_last": True, "trainer.batch_size": 10},
            True,
            "trainer.drop_last=true leaves no batch: trainer.batch_size is 10 users, the training",
        ),
    ],
)
def test_data_that_cannot_serve_the_examples_are_refused(
    folder: Path, settings: dict[str, Any], clock: bool, words: str
) -> None:
    config = compose(folder, settings, clock=clock)
    with pytest.raises(ConfigError, match=words):
        build_batches(config, read(config))


def test_profiles_need_no_order_and_may_leave_the_context_unread(folder: Path) -> None:
    unread: dict[str, Any] = {"+features.context.hour": {}, "model.user_tower.context": []}
    for settings, clock in ((PROFILES, False), (PROFILES | unread, True)):
        config = compose(folder, settings, clock=clock)
        assert build_batches(config, read(config)).count_batches(2) == 6
