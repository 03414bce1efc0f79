"""Runs that are tracked: awkward names and values, a store that is down, a run that goes on."""

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from pipelines.train import train
from recsys.config import TrainConfig, compose_config
from recsys.foundations import Ragged, TrackingError, read_json
from recsys.index import FaissIndex, Tuning, TuningQueries, tune_index

CASES = Path(__file__).parents[1] / "cases"
Fit = Callable[..., Path]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give one folder with a store; making its tables takes a second."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture
def fit(prepared_root: Path, store: Path, tmp_path: Path) -> Fit:
    """Give a function that trains, tracked, on the carrier log and gives the run's folder."""

    def run(settings: dict[str, Any]) -> Path:
        base = {
            "dataset": "table",
            "dataset.interactions": str(CASES / "B18" / "interactions.csv"),
            "dataset.prepared_root": str(prepared_root),
            "split": "leave_last_out",
            "model.embedding_dim": 8,
            "loss.num_sampled": 16,
            "trainer.epochs": 1,
            "trainer.batch_size": 64,
            "evaluation.k": [1, 10, 100],
            "evaluation.num_bootstrap": 10,
            "tracking": "mlflow",
            "tracking.uri": f"sqlite:///{store}/mlflow.db",
            "threads": 1,
            "run_dir": str(tmp_path / "run"),
        }
        config = compose_config("train", TrainConfig, base | settings)
        train(config, Path(config.run_dir))
        return Path(config.run_dir)

    return run


def client_of(store: Path) -> Any:
    from mlflow import MlflowClient

    uri = f"sqlite:///{store / 'mlflow.db'}"
    return MlflowClient(tracking_uri=uri, registry_uri=uri)


def tracked(store: Path, folder: Path) -> Any:
    return client_of(store).get_run(read_json(folder / "run.json")["tracked_run"])


def artifacts_of(store: Path, run: Any) -> Path:
    return store / "mlruns" / "recsys" / str(run.info.run_id) / "artifacts"


@pytest.mark.usefixtures("with_plots")
def test_a_run_is_recorded_with_settings_metrics_data_and_files(store: Path, fit: Fit) -> None:
    folder = fit({"trainer.epochs": 2, "run_dir": str(store / "runs" / "first")})
    run = tracked(store, folder)
    report = read_json(folder / "report.json")
    assert (run.info.status, run.info.run_name) == ("FINISHED", "runs/first")
    assert run.data.params["model.embedding_dim"] == "8"
    assert run.data.params["optimizer.name"] == "rowwise_adagrad"
    for k in (1, 10, 100):
        assert run.data.metrics[f"test_recall_at_{k}"] == report["metrics"][f"recall_at_{k}"]
    history = client_of(store).get_metric_history(run.info.run_id, "train_loss")
    assert [point.step for point in history] == [1, 2]
    [dataset] = run.inputs.dataset_inputs
    assert dataset.dataset.name == "table"
    files = artifacts_of(store, run)
    for name in ("config.yaml", "bundle/manifest.json", "report/report.json"):
        assert (files / name).is_file()
    assert list(files.glob("report/*.png"))


def test_the_tuning_of_the_index_is_sent_and_leaves_out_what_was_seen(
    store: Path, fit: Fit, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[TuningQueries] = []

    def noting(*args: Any, exclude: Ragged | None, **kwargs: Any) -> tuple[FaissIndex, Tuning]:
        asked.append(TuningQueries(args[1], exclude))
        return tune_index(*args, exclude=exclude, **kwargs)

    monkeypatch.setattr("recsys.config.build_index.tune_index", noting)
    folder = fit(
        {"index": "auto", "index.exact_below": 0, "index.target_k": 3, "index.num_queries": 20}
    )
    files = artifacts_of(store, tracked(store, folder)) / "report"
    for name in ("index_tuning.json", "index_tuning.png"):
        assert (files / name).read_bytes() == (folder / name).read_bytes()
    noted = read_json(folder / "bundle" / "manifest.json")["provenance"]["index_tuning"]
    tuning = read_json(files / "index_tuning.json")
    assert noted["chosen"] == next(one for one in tuning["trials"] if one["outcome"] == "chosen")
    [queries] = asked
    assert queries.exclude is not None  # as lookups do
    assert len(queries.exclude) == len(queries.vectors)
    assert queries.exclude.lengths.min() > 0


def test_the_bundle_is_not_sent_where_that_is_not_wanted(store: Path, fit: Fit) -> None:
    folder = fit({"tracking.log_bundle": False})
    files = artifacts_of(store, tracked(store, folder))
    assert (files / "report" / "report.json").is_file()
    assert not (files / "bundle").exists()


def test_long_lists_and_odd_characters_do_not_stop_a_run(
    store: Path, fit: Fit, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    case = yaml.safe_load((CASES / "B36" / "settings.yaml").read_text(encoding="utf-8"))
    names = case["features"]
    assert (len(names), len(str(names)) > 6000) == (200, True)
    items = pd.read_csv(CASES / "B36" / "catalog.csv")
    columns = pd.DataFrame(dict.fromkeys(names, items["genre"]))
    pd.concat([items, columns], axis=1).to_csv(tmp_path / "items.csv", index=False)
    folder = fit(
        {
            "dataset.items": str(tmp_path / "items.csv"),
            "model.item_tower.features": names,
            "evaluation.k": case["ks"],
            "tracking.experiment": case["experiment"],
            "tracking.run_name": case["note"].replace("\n", " "),
        }
    )
    run = tracked(store, folder)
    assert run.info.status == "FINISHED"
    assert len(run.data.params["model.item_tower.features"]) == 6000
    assert "whole in config.yaml: model.item_tower.features" in caplog.text
    [whole] = store.glob(f"mlruns/*/{run.info.run_id}/artifacts/config.yaml")
    config = yaml.safe_load(whole.read_text(encoding="utf-8"))
    assert config["model"]["item_tower"]["features"] == names
    assert config["tracking"]["run_name"] == case["note"].replace("\n", " ")
    report = read_json(folder / "report.json")
    assert {f"recall_at_{k}" for k in (1, 10, 100)} <= report["metrics"].keys()
    assert {f"test_recall_at_{k}" for k in (1, 10, 100)} <= run.data.metrics.keys()


def test_a_test_part_without_known_users_gives_finite_numbers_only(store: Path, fit: Fit) -> None:
    parts = {"interactions": None, "train": str(CASES / "B36" / "interactions.csv")}
    parts["test"] = str(CASES / "B36" / "test_without_known_users.csv")
    folder = fit({"split": "given", **{f"dataset.{k}": v for k, v in parts.items()}})
    run = tracked(store, folder)
    text = (folder / "report.json").read_text()
    assert "NaN" not in text
    assert "Infinity" not in text
    assert json.loads(text)["counts"]["num_new_users"] == 1
    assert all(math.isfinite(value) and abs(value) < 1e300 for value in run.data.metrics.values())
    assert not [name for name in run.data.metrics if name.startswith("validation")]


def test_without_a_test_part_the_run_ends_well_and_says_so(
    store: Path, fit: Fit, caplog: pytest.LogCaptureFixture
) -> None:
    train_only = {"interactions": None, "train": str(CASES / "B36" / "interactions.csv")}
    folder = fit({"split": "given", **{f"dataset.{k}": v for k, v in train_only.items()}})
    assert (folder / "bundle" / "manifest.json").is_file()
    assert not (folder / "report.json").exists()
    assert "the part to evaluate on is empty: there is no report" in caplog.text
    assert tracked(store, folder).info.status == "FINISHED"


def test_a_store_that_is_down_stops_the_run_at_once_and_leaves_nothing(
    fit: Fit, tmp_path: Path
) -> None:
    started = time.monotonic()
    with pytest.raises(TrackingError, match=r"127\.0\.0\.1:9"):
        fit({"tracking.uri": "http://127.0.0.1:9"})
    assert time.monotonic() - started < 30
    assert not (tmp_path / "run").exists()


def test_a_run_trains_on_without_the_store_where_that_is_set(
    fit: Fit, caplog: pytest.LogCaptureFixture
) -> None:
    folder = fit({"tracking.uri": "http://127.0.0.1:9", "tracking.on_error": "warn"})
    assert (folder / "bundle" / "manifest.json").is_file()
    assert (folder / "report.json").is_file()
    assert "The run goes on without tracking." in caplog.text
    assert read_json(folder / "run.json")["tracked_run"] is None


def test_a_resumed_run_goes_on_in_the_store(store: Path, fit: Fit) -> None:
    first = fit({"trainer.epochs": 2})
    before = read_json(first / "run.json")["tracked_run"]
    folder = fit({"trainer.epochs": 4, "resume": True})
    run = tracked(store, folder)
    assert run.info.run_id == before
    history = client_of(store).get_metric_history(before, "train_loss")
    assert [point.step for point in history] == [1, 2, 3, 4]
    assert run.data.params["trainer.epochs"] == "2"
    assert run.data.tags["resumed.trainer.epochs"] == "4"
    assert run.info.status == "FINISHED"


def test_a_run_that_fails_is_failed_in_the_store(
    store: Path, fit: Fit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("pipelines.train.fit", fail)
    with pytest.raises(MemoryError):
        fit({"tracking.experiment": "failing"})
    client = client_of(store)
    experiment = client.get_experiment_by_name("failing")
    [run] = client.search_runs([experiment.experiment_id])
    assert run.info.status == "FAILED"
