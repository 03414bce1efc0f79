"""The threads of an operator by the settings: one for each 2^29 operations of the largest layer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from recsys.config import TrainConfig, build, compose_config
from recsys.config.build_dataset import find_or_prepare
from recsys.config.build_operator_threads import build_operator_threads
from recsys.data import read_prepared
from recsys.foundations import set_threads, thread_bound

MANY = 2**17  # items
HISTORY = "model.user_tower.history"


@pytest.fixture(autouse=True)
def eight_threads() -> Iterator[None]:
    before, bound = torch.get_num_threads(), thread_bound()
    set_threads(8)
    yield
    set_threads(bound or before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a log of 3 users with 5 events each."""
    path = tmp_path_factory.mktemp("log")
    log = [(f"u{user}", f"i{step}", 1_000_000_000 + step) for user in range(3) for step in range(5)]
    columns = ["user_id", "item_id", "timestamp"]
    pd.DataFrame(log, columns=columns).to_parquet(path / "log.parquet")
    return path


def count(folder: Path, settings: dict[str, Any]) -> int:
    fixed: dict[str, Any] = {
        "dataset": "table",
        "dataset.interactions": str(folder / "log.parquet"),
        "dataset.prepared_root": str(folder / "prepared"),
        "split": "leave_last_out",
        "model.embedding_dim": 64,
        "trainer.batch_size": 256,
        "tracking": "none",
    }
    config = compose_config("train", TrainConfig, fixed | settings)
    model = build.build_model(config, read_prepared(find_or_prepare(config)))
    return build_operator_threads(config, model, MANY)


@pytest.mark.parametrize(
    ("settings", "threads"),
    [
        ({}, 1),
        ({"trainer.operator_threads": 5}, 5),
        # 2 x 2^17 items x 64 x 64 = 2^30; of a sample they are as many as the batch
        ({"model.item_tower.hidden": [64], "loss": "full_softmax"}, 2),
        ({"model.item_tower.hidden": [64], "loss": "full_logistic"}, 2),
        ({"model.item_tower.hidden": [64], "loss": "sampled_softmax"}, 1),
        # no layer that the catalogue goes through
        ({"model.item_tower.hidden": [], "loss": "full_softmax"}, 1),
        # 2 x 256 x 256 items x 64 x 192 = 1.5 x 2^30
        ({f"{HISTORY}.encoder": "gru", f"{HISTORY}.length": 256}, 3),
        ({f"{HISTORY}.encoder": "gru", f"{HISTORY}.length": 10}, 1),
    ],
)
def test_the_tower_that_multiplies_most_counts(
    folder: Path, settings: dict[str, Any], threads: int
) -> None:
    assert count(folder, settings) == threads
