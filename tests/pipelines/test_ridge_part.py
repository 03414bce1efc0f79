"""A ridge part through the stages: training, resumption, warm start, lists, neighbours, causes."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipelines.diagnose import diagnose
from recsys import load_bundle
from recsys.bundle import Bundle, read_bundle
from recsys.config import DiagnoseConfig, compose_config
from recsys.data import read_prepared
from recsys.foundations import make_generator
from recsys.models import ItemFactors, RidgePart

Train = Callable[..., Path]
WITHOUT = {
    "model.item_bias": True,
    "loss.streams": ["in_batch", "memory", "hard", "drawn"],
    "streams.hard.num_top": 20,
    "streams.hard.refresh_steps": 5,
    "trainer.epochs": 1,
}
WITH = WITHOUT | {
    "model.ridge.dim": 16,
    "model.ridge.regularization": 0.01,
    "model.ridge.unobserved": 0.1,
    "model.ridge.scale": 5.0,
    "model.ridge.iterations": 4,
}


@dataclass(frozen=True)
class Run:
    folder: Path
    bundle: Bundle


@pytest.fixture(scope="module")
def ridge(train_in: Train, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("ridge") / "run"
    return Run(folder, read_bundle(train_in(folder, WITH)))


def factors_of(bundle: Bundle) -> torch.Tensor:
    assert bundle.model.ridge is not None
    return bundle.model.ridge.item_factors


def test_the_towers_are_those_of_a_run_without_it_and_the_factors_those_of_the_training_part(
    ridge: Run, train_in: Train, tmp_path: Path, dataset_of: Any
) -> None:
    alone = read_bundle(train_in(tmp_path / "alone", WITHOUT))
    width = alone.model.output_dim
    assert ridge.bundle.item_vectors.shape[1] == width + 16
    np.testing.assert_array_equal(ridge.bundle.item_vectors[:, :width], alone.item_vectors)
    dataset = read_prepared(dataset_of(alone.path))
    fitted = ItemFactors(
        dataset.train.users,
        dataset.train.items,
        num_items=dataset.num_items,
        dim=16,
        generator=make_generator(0, "ridge"),
    ).fit(regularization=0.01, unobserved=0.1, iterations=4)
    part = RidgePart(*fitted.shape, regularization=0.01, unobserved=0.1, scale=5.0)
    part.set_item_factors(fitted)
    factors = part.item_factors
    assert torch.equal(factors_of(ridge.bundle), factors)
    vectors = ridge.bundle.item_vectors[:, width:]
    np.testing.assert_allclose(vectors, 5**0.5 * factors, rtol=1e-6)
    here, there = (
        json.loads((folder / "report.json").read_text())
        for folder in (ridge.folder, tmp_path / "alone")
    )
    of_towers = there["likelihood"]["metrics"]
    assert here["likelihood"]["metrics"] == pytest.approx(of_towers, rel=1e-6)
    assert here["metrics"] != there["metrics"]
    scores, others = (bundle.manifest["scores"]["validation"] for bundle in (ridge.bundle, alone))
    assert scores["log_likelihood"] == pytest.approx(others["log_likelihood"], rel=1e-6)


def test_an_outside_evaluator_finds_the_reports_recall_and_the_scores(
    ridge: Run, tmp_path: Path, recommend_to: Any, events_of: Any, dataset_of: Any
) -> None:
    path = ridge.bundle.path
    lists = recommend_to(tmp_path / "top.parquet", path, k=10)
    truth = events_of(dataset_of(path), "test").groupby("user_id")["item_id"].agg(set)
    given = lists.groupby("user_id")["item_id"].agg(set)
    recalls = [len(relevant & given[user]) / len(relevant) for user, relevant in truth.items()]
    report = json.loads((ridge.folder / "report.json").read_text())
    assert np.mean(recalls) == pytest.approx(report["metrics"]["recall_at_10"], abs=1e-12)


def test_a_resumed_run_ends_with_the_same_bytes(train_in: Train, tmp_path: Path) -> None:
    straight = read_bundle(train_in(tmp_path / "straight", WITH | {"trainer.epochs": 2}))
    train_in(tmp_path / "halted", WITH)
    settings = WITH | {"trainer.epochs": 2, "resume": True}
    resumed = read_bundle(train_in(tmp_path / "halted", settings))
    assert resumed.bundle_id == straight.bundle_id


def test_of_listed_settings_one_is_chosen_and_all_is_as_if_it_stood_alone(
    train_in: Train, tmp_path: Path
) -> None:
    lists = {
        "model.ridge.dim": [32, 16],
        "model.ridge.regularization": [5.0, 0.01],
        "model.ridge.unobserved": [0.1, 3.0],
    }
    settings = WITH | {"trainer.epochs": 2}
    straight = read_bundle(train_in(tmp_path / "straight", settings | lists))
    spec = straight.model.spec
    assert straight.item_vectors.shape[1] == straight.model.training_dim + spec.ridge_dim
    chosen = {
        "model.ridge.dim": spec.ridge_dim,
        "model.ridge.regularization": spec.ridge_regularization,
        "model.ridge.unobserved": spec.ridge_unobserved,
    }
    assert spec.ridge_regularization == 0.01
    alone = read_bundle(train_in(tmp_path / "alone", settings | chosen))
    assert alone.model.spec == spec
    np.testing.assert_array_equal(straight.item_vectors, alone.item_vectors)
    about = json.loads((tmp_path / "straight" / "report.json").read_text())["about"]
    assert about["ridge"] == {
        "dim": spec.ridge_dim,
        "regularization": 0.01,
        "unobserved": spec.ridge_unobserved,
        "scale": 5.0,
    }
    train_in(tmp_path / "halted", WITH | lists)
    resumed = read_bundle(train_in(tmp_path / "halted", settings | lists | {"resume": True}))
    assert resumed.bundle_id == straight.bundle_id


def test_of_listed_scales_each_epoch_takes_one_and_the_model_that_of_the_best_epoch(
    train_in: Train, tmp_path: Path
) -> None:
    scales = [0.001, 30.0, 4.0]
    settings = WITH | {"trainer.epochs": 3, "model.ridge.scale": scales, "trainer.validate_at": 5}
    straight = read_bundle(train_in(tmp_path / "straight", settings))
    scores = straight.manifest["scores"]["validation"]
    scale = straight.model.spec.ridge_scale
    assert scores["ridge_scale"] == scale
    assert scale in scales[1:]
    alone = read_bundle(train_in(tmp_path / "alone", settings | {"model.ridge.scale": scale}))
    of_alone = alone.manifest["scores"]["validation"]
    assert scores["recall_at_5"] == pytest.approx(of_alone["recall_at_5"], abs=1e-12)
    np.testing.assert_array_equal(straight.item_vectors, alone.item_vectors)
    train_in(tmp_path / "halted", settings | {"trainer.epochs": 1})
    resumed = read_bundle(train_in(tmp_path / "halted", settings | {"resume": True}))
    assert resumed.bundle_id == straight.bundle_id


def test_a_warm_start_fits_it_anew_and_may_change_it(
    ridge: Run, train_in: Train, tmp_path: Path
) -> None:
    settings = WITH | {"init_from": str(ridge.bundle.path), "seed": 3}
    warm = read_bundle(train_in(tmp_path / "same", settings))
    assert not torch.allclose(factors_of(warm), factors_of(ridge.bundle))  # of another seed
    wider = read_bundle(train_in(tmp_path / "wider", settings | {"model.ridge.dim": 32}))
    assert factors_of(wider).shape[1] == 32


def test_the_bias_of_a_neighbour_is_no_likeness(ridge: Run) -> None:
    vectors = np.array(ridge.bundle.item_vectors)
    ids = ridge.bundle.items.vocabulary.ids_of(np.arange(len(vectors))).to_pylist()
    place = ridge.bundle.model.bias_place
    assert place == 16
    assert vectors[:, place].any()
    found = load_bundle(ridge.bundle.path).neighbours([ids[3]], k=5).to_pandas()
    row = vectors[3].copy()
    row[place] = 0
    scores = vectors @ row
    scores[3] = -np.inf
    best = np.argsort(-scores)[:5]
    assert found["item_id"].tolist() == [ids[n] for n in best]
    np.testing.assert_allclose(found["score"], scores[best], rtol=1e-5)


def test_a_fresh_model_is_diagnosed_without_it(prepared_root: Path, tmp_path: Path) -> None:
    small = {
        "dataset": "synthetic",
        "dataset.num_users": 120,
        "dataset.num_items": 80,
        "dataset.num_interactions": 2400,
        "dataset.num_clusters": 6,
        "dataset.prepared_root": str(prepared_root),
        "model.embedding_dim": 8,
        "model.ridge.dim": 16,
        "estimators": ["full_softmax", "in_batch"],
        "sample_sizes": [8],
        "num_draws": 2,
        "batch_size": 128,
        "num_batches": 1,
        "num_bootstrap": 10,
        "threads": 1,
        "run_dir": str(tmp_path),
    }
    diagnose(compose_config("diagnose", DiagnoseConfig, small), tmp_path)
    assert (tmp_path / "diagnosis.json").is_file()
