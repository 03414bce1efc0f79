"""A small prepared data set, and bundles of untrained towers over it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from recsys.bundle import write_bundle
from recsys.data import (
    FeatureOptions,
    FilterSettings,
    PreparedDataset,
    RawEntities,
    RawLog,
    SplitSettings,
    prepare_dataset,
    read_prepared,
)
from recsys.index import FaissIndex, IndexSettings
from recsys.models import ModelSpec, build_two_tower, encode_candidates


def make_log(num_users: int, num_items: int, per_user: int, *, seed: int) -> RawLog:
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(num_users), per_user)
    items = np.concatenate([rng.permutation(num_items)[:per_user] for _ in range(num_users)])
    table = pa.table(
        {
            "user_id": pa.array([f"u{user}" for user in users], pa.large_string()),
            "item_id": pa.array([f"i{item}" for item in items], pa.large_string()),
            "timestamp": pa.array(1_700_000_000_000_000 + rng.permutation(len(users)) * 10**6),
        }
    )
    return RawLog(table, "time", {}, table.num_rows, [])


@pytest.fixture
def dataset(tmp_path: Path) -> PreparedDataset:
    items = pa.table(
        {
            "id": pa.array([f"i{item}" for item in range(32)], pa.large_string()),
            "genre": [f"g{item % 3}" for item in range(32)],
            "tags": [[f"t{item % 5}", f"t{item % 2}"] for item in range(32)],
            "title": [f"Title {item}" for item in range(32)],
        }
    )
    path = prepare_dataset(
        make_log(40, 30, 8, seed=0),
        items=RawEntities(items, {}, []),
        users=None,
        output=tmp_path / "dataset",
        filters=FilterSettings(),
        split=SplitSettings(rule="leave_last_out"),
        seed=0,
        exclude_seen=True,
        item_features={"genre": FeatureOptions(), "tags": FeatureOptions()},
    )
    return read_prepared(path)


@pytest.fixture
def make_bundle(dataset: PreparedDataset, tmp_path: Path) -> Callable[..., Path]:
    def make(name: str = "bundle", *, seed: int = 0, **chosen: Any) -> Path:
        torch.manual_seed(seed)
        model = build_two_tower(
            ModelSpec(embedding_dim=8, **chosen),
            num_users=dataset.num_users,
            num_items=dataset.num_items,
            user_schema=dataset.users.features.schema,
            item_schema=dataset.items.features.schema,
            context_schema=dataset.context_schema,
            item_counts=dataset.items.counts[: dataset.num_items],
        )
        vectors = encode_candidates(model, dataset.items.features, dataset.num_items)
        return write_bundle(
            tmp_path / name,
            model=model,
            dataset=dataset,
            item_vectors=vectors,
            index=FaissIndex.build(vectors, IndexSettings()),
            config={"seed": seed, "run_dir": "somewhere"},
            scores={"recall_at_10": 0.25},
            provenance={"path": str(tmp_path)},
        )

    return make
