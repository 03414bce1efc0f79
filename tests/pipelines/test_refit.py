"""`trainer.refit`: the model that is kept learnt from validation too, by choices made before."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipelines.evaluate import score
from pipelines.train import train
from recsys.bundle import read_bundle
from recsys.config import EvaluateConfig, TrainConfig, compose_config
from recsys.data import read_prepared
from recsys.foundations import ConfigError, DataError

Train = Callable[..., Path]
LISTED = {
    "model.item_bias": True,
    "model.item_bias_start": "log_popularity",
    "model.ridge.dim": [16, 32],
    "model.ridge.regularization": 0.01,
    "model.ridge.unobserved": 0.1,
    "model.ridge.scale": [2, 8, 32],
    "model.ridge.iterations": 4,
    "model.repeats.weight": [0, 1, 4],
    "model.repeats.decay": 0.9,
    "loss.num_sampled": 16,
    "trainer.batch_size": 64,
    "trainer.epochs": 5,
    "trainer.patience": 0,
    "optimizer.schedule": "cosine",
}


def write_parts(folder: Path) -> dict[str, str]:
    """Write 60 users with 12 events of 40 items each, the last two of each held out."""
    rng = np.random.default_rng(5)
    rows = [
        (f"u{user}", f"i{int(40 * rng.random() ** 2)}", 1_600_000_000 + 86_400 * place + user)
        for user in range(60)
        for place in range(12)
    ]
    log = pd.DataFrame(rows, columns=["user_id", "item_id", "timestamp"])
    place = log.groupby("user_id").cumcount()
    parts = {
        "train": log[place < 10],
        "validation": log[place == 10],
        "test": log[place == 11],
        "both": log[place < 11],
    }
    assert set(parts["both"].item_id) == set(parts["train"].item_id)  # so that rows are the same
    for name, part in parts.items():
        part.to_parquet(folder / f"{name}.parquet")
    return {name: str(folder / f"{name}.parquet") for name in parts}


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Give the settings of a run on such parts."""
    folder = tmp_path_factory.mktemp("parts")
    files = write_parts(folder)
    data = {
        "dataset": "table",
        "split": "given",
        "dataset.exclude_seen": False,
        "dataset.prepared_root": str(folder / "prepared"),
        "evaluation.k": [1, 5, 10],
        "evaluation.num_bootstrap": 20,
        "evaluation.popularity_alphas": [],
        "model.embedding_dim": 16,
        "tracking": "none",
        "threads": 1,
    }
    return (
        data | LISTED | {f"dataset.{name}": files[name] for name in ("train", "validation", "test")}
    )


def run(settings: dict[str, Any], folder: Path) -> Path:
    return train(compose_config("train", TrainConfig, settings | {"run_dir": str(folder)}), folder)


def report_of(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return report


def epochs_of(folder: Path) -> list[dict[str, float]]:
    state = json.loads((folder / "checkpoints" / "last" / "state.json").read_text())
    records: list[dict[str, float]] = state["position"]["records"]
    return records


@pytest.fixture(scope="module")
def refitted(given: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refitted") / "run"
    run(given | {"trainer.refit": True}, folder)
    return folder


def test_a_model_trained_again_is_the_one_trained_on_both_parts(
    refitted: Path, given: dict[str, Any], tmp_path: Path
) -> None:
    first = epochs_of(refitted)
    best = max(first, key=lambda record: record["validation_recall_at_10"])
    bundle = read_bundle(refitted / "bundle")
    spec = bundle.model.spec
    assert spec.ridge_scale == best["validation_ridge_scale"]
    settled = {
        "dataset.train": given["dataset.train"].replace("train", "both"),
        "dataset.validation": None,
        "model.ridge.dim": spec.ridge_dim,
        "model.ridge.scale": spec.ridge_scale,
        "model.repeats.weight": spec.repeats_weight,
        "model.repeats.decay": spec.repeats_decay,
    }
    run(given | settled, tmp_path / "both")
    both = epochs_of(tmp_path / "both")
    again = epochs_of(refitted / "refit")
    number = int(best["epoch"])
    assert len(again) == number < len(both)
    assert [r["train_loss"] for r in again] == [r["train_loss"] for r in both[:number]]
    assert [r["train_rows"] for r in again] == [660] * number
    assert [r["train_rows"] for r in first] == [600] * 5
    assert all("validation_recall_at_10" not in record for record in again)


def test_the_bundle_knows_what_was_chosen_and_holds_the_second_model(
    refitted: Path, given: dict[str, Any], tmp_path: Path
) -> None:
    without = read_bundle(run(given, tmp_path / "without"))
    bundle = read_bundle(refitted / "bundle")
    assert bundle.model.spec == without.model.spec
    assert not np.array_equal(bundle.item_vectors, without.item_vectors)
    assert report_of(refitted)["counts"]["num_users"] == 60
    assert report_of(refitted)["about"]["fitted_on"] == "training and validation"
    assert report_of(tmp_path / "without")["about"]["fitted_on"] == "training"


def test_popularity_counts_all_that_the_model_met_in_training_and_in_a_later_evaluation(
    refitted: Path, given: dict[str, Any], tmp_path: Path
) -> None:
    bundle = read_bundle(refitted / "bundle")
    both = pd.read_parquet(given["dataset.train"].replace("train", "both"))
    counts = both.item_id.value_counts()
    for row, item in enumerate(bundle.items.vocabulary.ids.to_pylist()):
        assert bundle.items.counts[row] == counts[item]
    settings = {
        "bundle": str(refitted / "bundle"),
        "run_dir": str(tmp_path),
        "evaluation.num_bootstrap": 20,
        "evaluation.popularity_alphas": [],
        "k": [1, 5, 10],
        "tracking": "none",
    }
    report = score(compose_config("evaluate", EvaluateConfig, settings)).to_json()
    first = report_of(refitted)
    for key in ("about", "metrics", "popularity", "slices"):
        assert json.loads(json.dumps(report[key])) == first[key]


def test_a_run_that_goes_on_after_its_first_training_ends_with_the_same_bytes(
    refitted: Path, given: dict[str, Any], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    run(given, folder)  # as if it had been killed there
    bundle = run(given | {"trainer.refit": True, "resume": True}, folder)
    assert read_bundle(bundle).bundle_id == read_bundle(refitted / "bundle").bundle_id
    again = run(given | {"trainer.refit": True, "resume": True}, folder)
    assert read_bundle(again).bundle_id == read_bundle(refitted / "bundle").bundle_id


def test_more_epochs_may_choose_otherwise_and_the_second_training_goes_on(
    given: dict[str, Any], tmp_path: Path
) -> None:
    settings = given | {
        "trainer.refit": True,
        "optimizer.schedule": "constant",
        "optimizer.learning_rate": 0.3,  # so that what is chosen changes
        "model.item_bias": False,
        "model.item_bias_start": "zero",
        "model.ridge.scale": [0.01, 0.1, 0.5, 2, 8],
        "model.repeats.weight": [0, 0.1, 0.5, 2],
    }
    straight = run(settings | {"trainer.epochs": 6}, tmp_path / "straight")
    one = read_bundle(run(settings | {"trainer.epochs": 1}, tmp_path / "twice")).model.spec
    more = run(settings | {"trainer.epochs": 6, "resume": True}, tmp_path / "twice")
    assert len(epochs_of(tmp_path / "straight" / "refit")) > 1
    assert one != read_bundle(straight).model.spec == read_bundle(more).model.spec
    for name in ("model.safetensors", "item_vectors.npy"):
        assert (more / name).read_bytes() == (straight / name).read_bytes()


def test_a_warm_start_is_compared_on_the_part_that_was_not_trained_on(
    refitted: Path, given: dict[str, Any], tmp_path: Path
) -> None:
    older = {"init_from": str(refitted / "bundle"), "trainer.epochs": 1}
    run(given | older | {"trainer.refit": True}, tmp_path / "refit")
    again = report_of(tmp_path / "refit")["warm_start"]
    assert set(again["before"]) == set(again["after"]) == set(again["difference"]) == {"test"}
    run(given | older, tmp_path / "once")
    once = report_of(tmp_path / "once")["warm_start"]
    assert set(once["after"]) == {"validation", "test"}
    run(given | older | {"trainer.refit": True, "resume": True}, tmp_path / "once")
    assert report_of(tmp_path / "once")["warm_start"] == again


def test_it_is_not_judged_by_what_it_learnt_from(refitted: Path, given: dict[str, Any]) -> None:
    words = "evaluation.part=validation"
    with pytest.raises(ConfigError, match=words):
        compose_config(
            "train", TrainConfig, given | {"trainer.refit": True, "evaluation.part": "validation"}
        )
    settings = {"bundle": str(refitted / "bundle"), "evaluation.part": "validation"}
    with pytest.raises(ConfigError, match=words):
        score(compose_config("evaluate", EvaluateConfig, settings | {"tracking": "none"}))


def test_what_has_nothing_to_add_is_refused_before_any_training(
    given: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="is empty: take a split with a validation part"):
        run(given | {"trainer.refit": True, "dataset.validation": None}, tmp_path / "empty")
    assert not (tmp_path / "empty" / "checkpoints").exists()


@pytest.mark.parametrize("examples", ["events", "profiles"])
def test_held_out_validation_users_train_with_all_their_events(
    train_in: Train, dataset_of: Callable[[Path], Path], tmp_path: Path, examples: str
) -> None:
    settings = {"split": "strong_generalization", "trainer.epochs": 2, "trainer.examples": examples}
    bundle = train_in(tmp_path, settings | {"trainer.refit": True})
    dataset = read_prepared(dataset_of(bundle))
    assert dataset.validation_input is not None
    known = len(dataset.train) + len(dataset.validation_input) + len(dataset.validation)
    assert epochs_of(tmp_path)[0]["train_rows"] == len(dataset.train)
    assert epochs_of(tmp_path / "refit")[0]["train_rows"] == known
