"""Bundles of untrained towers over small logs: lookups do not need a good model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch

from recsys.bundle import Bundle, read_bundle, write_bundle
from recsys.data import (
    FeatureOptions,
    FilterSettings,
    RawEntities,
    RawLog,
    SplitSettings,
    prepare_dataset,
    read_prepared,
)
from recsys.index import FaissIndex, IndexSettings
from recsys.models import ModelSpec, build_two_tower, encode_candidates

MakeBundle = Callable[..., Bundle]


def raw_log(rows: list[tuple[str, str]], **context: list[str]) -> RawLog:
    """Make a log of (user, item), one second apart."""
    users, items = zip(*rows, strict=True)
    table = pa.table(
        {
            "user_id": pa.array(users, pa.large_string()),
            "item_id": pa.array(items, pa.large_string()),
            "timestamp": pa.array([1_700_000_000_000_000 + n * 10**6 for n in range(len(rows))]),
            **context,
        }
    )
    return RawLog(table, "time", {}, table.num_rows, [])


def raw_entities(columns: dict[str, list[Any]]) -> RawEntities:
    """Make a table of items or users, whose column `id` holds text."""
    ids = {"id": pa.array(columns["id"], pa.large_string())}
    return RawEntities(pa.table({**columns, **ids}), {}, [])


@pytest.fixture
def make_bundle(tmp_path: Path) -> MakeBundle:
    """Build a bundle of (user, item) events, all of them in the training part."""

    def make(
        rows: list[tuple[str, str]],
        *,
        items: dict[str, list[Any]] | None = None,
        users: dict[str, list[Any]] | None = None,
        item_features: tuple[str, ...] = (),
        user_features: tuple[str, ...] = (),
        context: dict[str, list[str]] | None = None,
        index: IndexSettings | None = None,
        exclude_seen: bool = True,
        **spec: Any,
    ) -> Bundle:
        path = prepare_dataset(
            raw_log(rows, **(context or {})),
            items=None if items is None else raw_entities(items),
            users=None if users is None else raw_entities(users),
            output=tmp_path / "dataset",
            filters=FilterSettings(duplicates="keep_all"),
            split=SplitSettings(rule="given"),
            seed=0,
            exclude_seen=exclude_seen,
            item_features=dict.fromkeys(item_features, FeatureOptions()),
            user_features=dict.fromkeys(user_features, FeatureOptions()),
            context_features=dict.fromkeys(context or (), FeatureOptions()),
        )
        dataset = read_prepared(path)
        torch.manual_seed(0)
        model = build_two_tower(
            ModelSpec(embedding_dim=16, init_std=0.5, **spec),
            num_users=dataset.num_users,
            num_items=dataset.num_items,
            user_schema=dataset.users.features.schema,
            item_schema=dataset.items.features.schema,
            context_schema=dataset.context_schema,
            item_counts=dataset.items.counts[: dataset.num_items],
        )
        vectors = encode_candidates(model, dataset.items.features, dataset.num_items)
        write_bundle(
            tmp_path / "bundle",
            model=model,
            dataset=dataset,
            item_vectors=vectors,
            index=FaissIndex.build(vectors, index or IndexSettings()),
            config={},
            scores={},
            provenance={},
        )
        return read_bundle(tmp_path / "bundle")

    return make
