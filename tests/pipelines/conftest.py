"""Stages run in this process, on made-up data, as the commands would run them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipelines.train import train
from recsys.config import TrainConfig, compose_config

CASES = Path(__file__).parents[1] / "cases"
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
