"""The stages `prepare` and `train`: what they write, on every split, with and without a clock."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipelines.evaluate import evaluate
from pipelines.prepare import prepare
from pipelines.train import train
from recsys.bundle import read_bundle
from recsys.config import (
    EvaluateConfig,
    PrepareConfig,
    TrainConfig,
    compose_config,
)
from recsys.config.build_batches import build_batches
from recsys.data import read_prepared

Train = Callable[..., Path]
REPORT = ("metrics", "through_index", "popularity", "difference_to_popularity", "ties", "slices")


def test_train_leaves_a_bundle_a_report_plots_and_checkpoints(trained: Any) -> None:
    names = {path.relative_to(trained.folder).as_posix() for path in trained.folder.rglob("*")}
    assert names >= {
        *("run.json", "report.json", "per_user.parquet", "bundle/manifest.json"),
        *("checkpoints/last/state.json", "checkpoints/best/state.json"),
        *("plots/recall_at_k.png", "plots/training_curves.png"),
        *("plots/recall_by_popularity_decile.png", "plots/popularity_dial.png"),
    }
    assert not [name for name in names if ".tmp-" in name or name.endswith((".pkl", ".pt"))]
    for plot in (trained.folder / "plots").iterdir():
        assert plot.read_bytes().startswith(b"\x89PNG")


def test_the_model_finds_the_planted_structure(trained: Any) -> None:
    report = json.loads((trained.folder / "report.json").read_text())
    recall = report["metrics"]["recall_at_10"]
    # 80 items, of which a user has seen about 16: chance is 10 / 64, popularity knows more.
    assert recall > report["popularity"]["metrics"]["recall_at_10"] + 0.05
    assert recall > 10 / 64 + 0.1
    assert report["through_index"]["metrics"]["index_recall_at_10"] == 1.0  # flat: exact
    assert report["through_index"]["metrics"]["recall_at_10"] == recall


def test_the_bundle_states_settings_scores_and_where_it_came_from(
    trained: Any, dataset_of: Any
) -> None:
    manifest = read_bundle(trained.bundle).manifest
    report = json.loads((trained.folder / "report.json").read_text())
    assert manifest["config"]["model"]["embedding_dim"] == 16
    assert manifest["scores"]["test"]["recall_at_10"] == report["metrics"]["recall_at_10"]
    assert 0 < manifest["scores"]["validation"]["recall_at_10"] <= 1
    dataset = read_prepared(dataset_of(trained.bundle))
    assert manifest["dataset_fingerprint"] == dataset.fingerprint


def test_a_prepared_dataset_is_used_again_and_others_are_not(
    train_in: Train, trained: Any, tmp_path: Path, dataset_of: Any
) -> None:
    first = dataset_of(trained.bundle)
    before = (first / "manifest.json").stat().st_mtime_ns
    again = dataset_of(train_in(tmp_path / "a", {"trainer.epochs": 1}))
    assert (again, (again / "manifest.json").stat().st_mtime_ns) == (first, before)
    other = dataset_of(train_in(tmp_path / "b", {"trainer.epochs": 1, "dataset.seed": 9}))
    assert other != first
    split = dataset_of(train_in(tmp_path / "c", {"trainer.epochs": 1, "split": "random"}))
    assert split not in (first, other)


def test_an_epoch_emits_items_at_the_rate_that_log_q_states(
    tiny: dict[str, Any], trained: Any, dataset_of: Any
) -> None:
    config = compose_config("train", TrainConfig, tiny)
    dataset = read_prepared(dataset_of(trained.bundle))
    batches = build_batches(config, dataset)
    emitted = np.concatenate([batch.positives for batch in batches.epoch(2)])
    rates = np.bincount(emitted, minlength=dataset.num_items)
    assert (rates == dataset.items.counts[: dataset.num_items]).all()


SPLITS = {
    "temporal": ("training and validation", True),
    "random": ("training and validation", True),
    "leave_last_out": ("training and validation", True),
    "strong_generalization": ("the input part of the held-out users", False),
}


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("loss", ["full_softmax", "sampled_softmax"])
def test_every_split_trains_and_evaluate_gives_the_reports_numbers(
    train_in: Train, tiny: dict[str, Any], split: str, loss: str, tmp_path: Path
) -> None:
    drop = {key: value for key, value in tiny.items() if key != "loss.num_sampled"}
    config = compose_config("train", TrainConfig, drop | {"split": split, "loss": loss})
    bundle = train(config, tmp_path / "run")
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    rule, are_known = SPLITS[split]
    assert report["about"]["history"] == rule
    assert (report["counts"]["num_new_users"] == 0) <= are_known
    settings = {"bundle": str(bundle), "k": [1, 5, 10], "tracking": "none", "threads": 1}
    settings |= {"evaluation.num_bootstrap": 50}
    evaluate(compose_config("evaluate", EvaluateConfig, settings), tmp_path / "again")
    again = json.loads((tmp_path / "again" / "report.json").read_text())
    assert {key: again[key] for key in REPORT} == {key: report[key] for key in REPORT}
    assert report["metrics"]["recall_at_10"] > report["popularity"]["metrics"]["recall_at_10"]


def write_log(path: Path, *, clock: str) -> Path:
    """Write a log of 30 users in 2 groups whose items are 20 and 20, with or without a time."""
    rng = np.random.default_rng(0)
    rows = [
        (f"u{user}", f"i{20 * (user % 2) + item}", place)
        for user in range(30)
        for place, item in enumerate(rng.permutation(20)[:12])
    ]
    log = pd.DataFrame(rows, columns=["user_id", "item_id", "timestamp"])
    (log if clock == "order" else log.drop(columns="timestamp")).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("clock", ["order", "none"])
def test_a_log_without_a_clock_trains(tiny: dict[str, Any], clock: str, tmp_path: Path) -> None:
    settings = {k: v for k, v in tiny.items() if not k.startswith("dataset.num_")} | {
        "dataset": "table",
        "dataset.interactions": str(write_log(tmp_path / "log.csv", clock=clock)),
        "dataset.timestamp_unit": "order" if clock == "order" else "auto",
        "trainer.epochs": 25,
        "trainer.batch_size": 32,
    }
    train(compose_config("train", TrainConfig, settings), tmp_path / "run")
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["about"]["clock"] == clock
    rule = "leave_last_out" if clock == "order" else "random"
    assert report["about"]["split"]["rule"] == rule
    # A user's items are 20 of 40, so 10 of the 9 to 10 of the own group that are left find all.
    assert report["metrics"]["recall_at_10"] > 0.9


def test_prepare_writes_the_dataset_and_train_takes_it(
    train_in: Train, tiny: dict[str, Any], tmp_path: Path
) -> None:
    given = {key: value for key, value in tiny.items() if key.startswith("dataset")}
    config = compose_config("prepare", PrepareConfig, given | {"dataset_dir": str(tmp_path / "d")})
    assert prepare(config, tmp_path / "run") == tmp_path / "d"
    dataset = read_prepared(tmp_path / "d")
    bundle = train_in(tmp_path / "t", {"dataset_dir": str(tmp_path / "d"), "trainer.epochs": 1})
    assert read_bundle(bundle).dataset_fingerprint == dataset.fingerprint


def test_prepare_writes_into_the_runs_folder_by_default(
    tiny: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    given = {key: value for key, value in tiny.items() if key.startswith("dataset")}
    path = prepare(compose_config("prepare", PrepareConfig, given), tmp_path / "run")
    assert path == tmp_path / "run" / "dataset"
    text = "\n".join(caplog.messages)
    for words in (
        "Interactions read: 2,400",
        "density",
        "Popularity in training",
        "leave_last_out",
    ):
        assert words in text
