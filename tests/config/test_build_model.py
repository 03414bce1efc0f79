"""From settings to a model: every setting of the history arrives, and times must be there."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recsys.config import TrainConfig, build, compose_config
from recsys.config.build_dataset import find_or_prepare
from recsys.data import PreparedDataset, read_prepared
from recsys.foundations import ConfigError

HISTORY = "model.user_tower.history"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a log of 3 users with 5 events each."""
    path = tmp_path_factory.mktemp("log")
    log = [(f"u{user}", f"i{step}", 1_000_000_000 + step) for user in range(3) for step in range(5)]
    columns = ["user_id", "item_id", "timestamp"]
    pd.DataFrame(log, columns=columns).to_parquet(path / "log.parquet")
    return path


def compose(folder: Path, settings: dict[str, Any], *, unit: str = "auto") -> TrainConfig:
    fixed: dict[str, Any] = {
        "dataset": "table",
        "dataset.interactions": str(folder / "log.parquet"),
        "dataset.prepared_root": str(folder / "prepared"),
        "dataset.timestamp_unit": unit,
        "split": "leave_last_out",
        "tracking": "none",
    }
    return compose_config("train", TrainConfig, fixed | settings)


def read(config: TrainConfig) -> PreparedDataset:
    return read_prepared(find_or_prepare(config))


def test_every_setting_of_the_history_reaches_the_model(folder: Path) -> None:
    settings: dict[str, Any] = {
        "encoder": "transformer",
        "length": 7,
        "decay": 0.7,
        "exponent": 0.25,
        "dropout": 0.125,
        "table": "shared",
        "num_heads": 4,
        "num_layers": 3,
        "layer_dropout": 0.375,
        "positions": "absolute",
        "time_gaps": True,
    }
    config = compose(folder, {f"{HISTORY}.{name}": value for name, value in settings.items()})
    spec = build.build_model_spec(config.model, clock="time").user_tower
    names = {"encoder": "history", "length": "history_length", "dropout": "history_dropout"}
    names["table"] = "history_table"
    found = {name: getattr(spec, names.get(name, name)) for name in settings}
    assert found == settings
    assert build.build_model(config, read(config)).uses_times
    interests = {f"{HISTORY}.encoder": "attention", f"{HISTORY}.num_interests": 3}
    config = compose(folder, interests)
    assert build.build_model(config, read(config)).num_interests == 3


def test_time_gaps_are_refused_where_the_log_has_only_an_order(folder: Path) -> None:
    settings = {f"{HISTORY}.encoder": "gru", f"{HISTORY}.time_gaps": True}
    config = compose(folder, settings, unit="order")
    dataset = read(config)
    assert dataset.clock == "order"
    with pytest.raises(ConfigError, match=r"history.time_gaps=true needs the times of the events"):
        build.build_model(config, dataset)


@pytest.mark.parametrize(
    ("encoder", "unit", "read_times"),
    [
        ("gru", "s", True),
        ("gru", "order", False),
        ("recency", "s", False),
    ],
)
def test_auto_reads_time_gaps_where_an_encoder_can_and_the_log_has_times(
    folder: Path, encoder: str, unit: str, read_times: bool
) -> None:
    config = compose(folder, {f"{HISTORY}.encoder": encoder}, unit=unit)
    assert config.model.user_tower.history.time_gaps == "auto"
    assert build.build_model(config, read(config)).uses_times == read_times


def test_time_gaps_of_another_word_are_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"time_gaps must be true, false or auto, got 'maybe'"):
        compose(folder, {f"{HISTORY}.time_gaps": "maybe"})


def test_the_listed_settings_of_a_ridge_part_are_taken_with_each_other(folder: Path) -> None:
    ridge = {"model.ridge.regularization": [0.25, 0.5], "model.ridge.unobserved": 1}
    config = compose(folder, ridge | {"model.ridge.dim": [16, 48]}).model
    assert config.ridge.settings == [
        (16, 0.25, 1.0),
        (16, 0.5, 1.0),
        (48, 0.25, 1.0),
        (48, 0.5, 1.0),
    ]
    spec = build.build_model_spec(config, clock="time")
    found = spec.ridge_dim, spec.ridge_regularization, spec.ridge_unobserved
    assert found == (16, 0.25, 1.0)


def test_the_listed_settings_of_repeats_are_taken_with_each_other_where_items_may_come_again(
    folder: Path,
) -> None:
    listed = {"model.repeats.weight": [0, 0.5, 3], "model.repeats.decay": [0.9, 1]}
    config = compose(folder, listed).model
    pairs = [(0.0, 1.0), (0.5, 0.9), (0.5, 1.0), (3.0, 0.9), (3.0, 1.0)]
    assert build.repeats_pairs(config, exclude_seen=False) == pairs
    assert build.repeats_pairs(config, exclude_seen=True) == [(0.0, 1.0)]
    without = compose(folder, listed | {f"{HISTORY}.encoder": "none"}).model
    assert build.repeats_pairs(without, exclude_seen=False) == [(0.0, 1.0)]
    fixed = compose(folder, {"model.repeats.weight": 3, "model.repeats.decay": 0.9}).model
    for exclude_seen, found in ((False, (3.0, 0.9)), (True, (0.0, 1.0))):
        spec = build.build_model_spec(fixed, clock="time", exclude_seen=exclude_seen)
        assert (spec.repeats_weight, spec.repeats_decay) == found
