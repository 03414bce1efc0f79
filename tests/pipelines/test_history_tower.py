"""Histories that read the item tower, by the stages: lists, bundles, cold items, warm start."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.diagnose import diagnose
from pipelines.train import train
from recsys import load_bundle
from recsys.bundle import read_bundle
from recsys.config import DiagnoseConfig, TrainConfig, compose_config
from recsys.data import read_prepared
from recsys.models import encode_candidates

Train = Callable[..., Path]
WITH = {
    "model.user_tower.history.table": "tower",
    "model.normalize": True,
    "model.temperature.initial": 0.1,
    "trainer.epochs": 2,
}


@pytest.fixture(scope="module")
def folder(train_in: Train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tower") / "run"
    train_in(folder, WITH)
    return folder


def test_lists_of_the_bundle_have_the_reports_recall_and_evaluate_agrees(
    folder: Path,
    tmp_path: Path,
    recommend_to: Any,
    events_of: Any,
    dataset_of: Any,
    run_evaluate: Callable[..., dict[str, Any]],
) -> None:
    bundle = folder / "bundle"
    lists = recommend_to(tmp_path / "top.parquet", bundle, k=10)
    truth = events_of(dataset_of(bundle), "test").groupby("user_id")["item_id"].agg(set)
    given = lists.groupby("user_id")["item_id"].agg(set)
    recalls = [len(relevant & given[user]) / len(relevant) for user, relevant in truth.items()]
    report = json.loads((folder / "report.json").read_text())
    assert np.mean(recalls) == pytest.approx(report["metrics"]["recall_at_10"], abs=1e-12)
    again = run_evaluate(tmp_path, bundle=str(bundle), k=[1, 5, 10])
    assert again["metrics"] == report["metrics"]


def test_there_is_no_table_of_histories_and_a_user_gets_the_same_vector_alone(folder: Path) -> None:
    lookup = load_bundle(folder / "bundle")
    assert not any("history_table" in name for name, _ in lookup.bundle.model.tables())
    together = lookup.embed_users().to_pylist()
    for row in together[::40]:
        assert lookup.embed_users([row["user_id"]]).to_pylist() == [row]


def test_a_resumed_run_ends_with_the_same_bytes(
    folder: Path, train_in: Train, tmp_path: Path
) -> None:
    train_in(tmp_path, WITH | {"trainer.epochs": 1})
    resumed = train_in(tmp_path, WITH | {"resume": True})
    assert read_bundle(resumed).bundle_id == read_bundle(folder / "bundle").bundle_id


def test_a_warm_start_begins_where_the_bundle_ended(
    folder: Path, train_in: Train, tmp_path: Path
) -> None:
    settings = WITH | {"init_from": str(folder / "bundle"), "optimizer.learning_rate": 1e-9}
    settings |= {"optimizer.dense_learning_rate": 1e-9, "trainer.epochs": 1}
    old, new = read_bundle(folder / "bundle"), read_bundle(train_in(tmp_path, settings))
    np.testing.assert_allclose(new.item_vectors, old.item_vectors, atol=1e-5)


def test_an_item_without_training_events_that_a_user_names_changes_the_list(
    tiny: dict[str, Any], tmp_path: Path
) -> None:
    settings = tiny | WITH | {"split": "cold_items", "model.item_tower.use_id": False}
    lookup = load_bundle(train(compose_config("train", TrainConfig, settings), tmp_path))
    bundle = lookup.bundle
    cold = bundle.items.vocabulary.ids_of(
        np.flatnonzero(~bundle.model.item_tower.rows.trained.numpy())
    ).to_pylist()
    vectors = lookup.embed_users(histories={"x": cold[:1], "y": [], "z": cold[1:2]})
    x, y, z = np.array(vectors["vector"].to_pylist())
    assert not np.allclose(x, y, atol=1e-3)
    assert not np.allclose(x, z, atol=1e-3)


def test_every_loss_trains_with_it(train_in: Train, tmp_path: Path, dataset_of: Any) -> None:
    settings: dict[str, Any] = WITH | {"trainer.epochs": 1}
    settings["loss.streams"] = ["in_batch", "memory", "hard", "drawn"]
    settings |= {"streams.hard.num_top": 20, "streams.hard.refresh_steps": 5}
    path = train_in(tmp_path, settings)
    bundle, dataset = read_bundle(path), read_prepared(dataset_of(path))
    again = encode_candidates(bundle.model, dataset.items.features, dataset.num_items)
    np.testing.assert_array_equal(again, bundle.item_vectors)


def test_a_fresh_model_is_diagnosed(prepared_root: Path, tmp_path: Path) -> None:
    settings = {
        "dataset": "synthetic",
        "dataset.num_users": 120,
        "dataset.num_items": 80,
        "dataset.num_interactions": 2400,
        "dataset.num_clusters": 6,
        "dataset.prepared_root": str(prepared_root),
        "model.embedding_dim": 8,
        "model.user_tower.history.table": "tower",
        "estimators": ["full_softmax", "in_batch"],
        "sample_sizes": [8],
        "num_draws": 2,
        "batch_size": 128,
        "num_batches": 1,
        "num_bootstrap": 10,
        "threads": 1,
        "run_dir": str(tmp_path),
    }
    diagnose(compose_config("diagnose", DiagnoseConfig, settings), tmp_path)
    assert (tmp_path / "diagnosis.json").is_file()
