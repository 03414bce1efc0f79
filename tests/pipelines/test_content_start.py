"""The content start by the stages: it is where training begins, and a warm start needs none."""

import logging
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipelines.train import train
from recsys.bundle import read_bundle
from recsys.config import TrainConfig, compose_config
from recsys.data import read_prepared
from recsys.models import TwoTower, start_at_content
from recsys.models.feature_encoder import BagEncoder, CategoryEncoder

WITH = {
    "split": "cold_items",
    "model.feature_start": "content",
    "model.item_tower.use_id": False,
    "model.user_tower.history.table": "tower",
    "loss": "full_softmax",
    "loss.candidates": "trained",
    "trainer.epochs": 1,
    "optimizer.learning_rate": 1e-9,
    "optimizer.dense_learning_rate": 1e-9,
}


def run(settings: dict[str, Any], folder: Path) -> Path:
    settings = {key: value for key, value in settings.items() if key != "loss.num_sampled"}
    changed = settings | {"run_dir": str(folder)}
    return train(compose_config("train", TrainConfig, changed), folder)


def tables_of(model: TwoTower) -> list[torch.Tensor]:
    encoders = model.item_tower.features.encoders
    return [one.table.weight for one in encoders if isinstance(one, BagEncoder | CategoryEncoder)]


def test_training_begins_at_the_content_and_a_warm_start_where_the_bundle_ended(
    tiny: dict[str, Any], tmp_path: Path, dataset_of: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path = run(tiny | WITH, tmp_path / "first")
    assert "content start: " in caplog.text
    loss = re.search(r"epoch 1: loss (\S+),", caplog.text)
    assert loss is not None
    # Nothing is learnt: about uniform, and over the 56 items with training events of 80.
    assert float(loss[1]) == pytest.approx(np.log(56), abs=0.1)
    bundle, dataset = read_bundle(path), read_prepared(dataset_of(path))
    found = [table.detach().clone() for table in tables_of(bundle.model)]
    with torch.no_grad():
        for table in tables_of(bundle.model):
            table.normal_(std=3.0)
    start_at_content(bundle.model, dataset.items.features)
    assert len(found) == 2  # of a category and of tags
    for table, expected in zip(found, tables_of(bundle.model), strict=True):
        assert table.abs().max() > 0.01
        torch.testing.assert_close(table[1:], expected[1:], atol=1e-5, rtol=1e-5)

    caplog.clear()
    again = run(tiny | WITH | {"init_from": str(path)}, tmp_path / "second")
    assert "content start: " not in caplog.text
    again_vectors = read_bundle(again).item_vectors
    np.testing.assert_allclose(again_vectors, bundle.item_vectors, atol=1e-5)
