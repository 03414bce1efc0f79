"""Stages run in this process, on made-up data, as the commands would run them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pipelines.evaluate import evaluate
from pipelines.recommend import recommend
from pipelines.train import train
from recsys.bundle import read_bundle
from recsys.config import EvaluateConfig, RecommendConfig, TrainConfig, compose_config

TINY = {
    "dataset": "synthetic",
    "dataset.num_users": 120,
    "dataset.num_items": 80,
    "dataset.num_interactions": 2400,
    "dataset.num_clusters": 6,
    "model.embedding_dim": 16,
    "loss.num_sampled": 32,
    "trainer.epochs": 4,
    "trainer.batch_size": 128,
    "evaluation.k": [1, 5, 10],
    "evaluation.num_bootstrap": 50,
    "tracking": "none",
    "threads": 1,
}

Train = Callable[..., Path]


@dataclass(frozen=True)
class Run:
    """A finished run of `train`."""

    folder: Path
    bundle: Path


@pytest.fixture
def with_plots() -> None:
    """Have a test's runs draw their plots, which takes most of their time."""


@pytest.fixture(autouse=True)
def plots_as_asked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the plots of a test that does not ask for them; `trained` has some."""
    if "with_plots" not in request.fixturenames:
        monkeypatch.setattr("recsys.evaluation.results.write_plots", lambda *_: [])


@pytest.fixture(scope="session")
def prepared_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of prepared data sets, which all runs share."""
    return tmp_path_factory.mktemp("prepared")


@pytest.fixture(scope="session")
def tiny(prepared_root: Path) -> dict[str, Any]:
    """Give the settings of a run that takes a second."""
    return TINY | {"dataset.prepared_root": str(prepared_root)}


@pytest.fixture(scope="session")
def train_in(tiny: dict[str, Any]) -> Train:
    """Give a function that trains into a folder; settings stand over those of `tiny`."""

    def run(folder: Path, settings: dict[str, Any] | None = None) -> Path:
        changed = tiny | {"run_dir": str(folder)} | (settings or {})
        return train(compose_config("train", TrainConfig, changed), folder)

    return run


@pytest.fixture(scope="session")
def trained(train_in: Train, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Train once, for the tests that only read what a run leaves."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    return Run(folder, train_in(folder))


@pytest.fixture(scope="session")
def dataset_of() -> Callable[[Path], Path]:
    """Give a function from a bundle to the folder of the data set that it was trained on."""
    return lambda bundle: Path(read_bundle(bundle).manifest["provenance"]["dataset_dir"])


@pytest.fixture(scope="session")
def events_of() -> Callable[[Path, str], pd.DataFrame]:
    """Give a function that reads a part of a prepared data set as ids, from its files alone."""

    def read(dataset: Path, part: str) -> pd.DataFrame:
        users = pd.read_parquet(dataset / "users.parquet", columns=["id"])["id"].to_numpy()
        items = pd.read_parquet(dataset / "items.parquet", columns=["id"])["id"].to_numpy()
        events = pd.read_parquet(dataset / part)
        columns = {"user_id": users[events["user"]], "item_id": items[events["item"]]}
        return pd.DataFrame(columns | {"timestamp": events["timestamp"]})

    return read


@pytest.fixture(scope="session")
def recommend_to() -> Callable[..., pd.DataFrame]:
    """Give a function that runs `recommend` into a file and reads it."""

    def run(output: Path, bundle: Path, **settings: Any) -> pd.DataFrame:
        given = {"bundle": str(bundle), "output": str(output), "threads": 1, **settings}
        assert recommend(compose_config("recommend", RecommendConfig, given)) == output
        return pd.read_parquet(output)

    return run


@pytest.fixture(scope="session")
def run_evaluate() -> Callable[..., dict[str, Any]]:
    """Give a function that runs `evaluate` in a folder and reads its report."""

    def run(folder: Path, **settings: Any) -> dict[str, Any]:
        given = {"tracking": "none", "threads": 1, "evaluation.num_bootstrap": 20, **settings}
        evaluate(compose_config("evaluate", EvaluateConfig, given), folder)
        report: dict[str, Any] = json.loads((folder / "report.json").read_text())
        return report

    return run
