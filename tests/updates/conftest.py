"""A bundle of untrained towers over a small log, and updates of it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recsys.bundle import Bundle, read_bundle
from recsys.data import (
    FeatureOptions,
    FilterSettings,
    RawEntities,
    RawLog,
    SplitSettings,
    prepare_dataset,
)
from recsys.index import IndexSettings
from recsys.models import UserTowerSpec
from recsys.updates import RecallSettings, Updated, compact_bundle, update_bundle
from tests.untrained import write_untrained

NUM_USERS, NUM_ITEMS, NUM_TRAINED = 20, 30, 26
FEATURES = {name: FeatureOptions() for name in ("genre", "tags", "price")}
RECALL = RecallSettings(k=5, num_queries=10, seed=0, drift=0.01)

MakeBundle = Callable[..., Bundle]
Update = Callable[..., Bundle]


def item_table(ids: Sequence[str], *, seed: int) -> pa.Table:
    """Make items with random features, as a file of them would be read."""
    rng = np.random.default_rng(seed)
    columns = {
        "id": pa.array(ids, pa.large_string()),
        "title": [f"Title {one}" for one in ids],
        "genre": [f"g{rng.integers(4)}" for _ in ids],
        "tags": pa.array([[f"t{rng.integers(6)}", f"t{rng.integers(3)}"] for _ in ids]),
        "price": rng.integers(1, 50, len(ids)).astype(float),
    }
    return pa.table(columns)


def make_log() -> RawLog:
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(NUM_USERS), 7)
    items = np.concatenate([rng.permutation(NUM_TRAINED)[:7] for _ in range(NUM_USERS)])
    items[:NUM_TRAINED] = np.arange(NUM_TRAINED)  # each has an event
    columns = {
        "user_id": pa.array([f"u{user}" for user in users], pa.large_string()),
        "item_id": pa.array([f"i{item}" for item in items], pa.large_string()),
        "timestamp": pa.array(1_700_000_000_000_000 + np.arange(len(users)) * 10**6),
    }
    return RawLog(pa.table(columns), "time", {}, len(users), [])


@pytest.fixture
def make_items() -> Callable[..., pa.Table]:
    """Give a function that makes items with random features."""
    return item_table


@pytest.fixture
def make_bundle(tmp_path: Path) -> MakeBundle:
    """Give a function that makes a bundle of a model of some specification."""

    def make(index: IndexSettings | None = None, **spec: Any) -> Bundle:
        path = prepare_dataset(
            make_log(),
            items=RawEntities(item_table([f"i{n}" for n in range(NUM_ITEMS)], seed=1), {}, []),
            users=None,
            output=tmp_path / "dataset",
            filters=FilterSettings(duplicates="keep_all"),
            split=SplitSettings(rule="given"),
            seed=0,
            exclude_seen=False,
            item_features=FEATURES,
        )
        settings: dict[str, Any] = {"user_tower": UserTowerSpec(history_length=5), **spec}
        return write_untrained(tmp_path / "bundle", path, index, embedding_dim=8, **settings)

    return make


@pytest.fixture
def versions(tmp_path: Path) -> Callable[[], Path]:
    """Give a function that names a new folder on each call."""
    made: list[Path] = []

    def name() -> Path:
        made.append(tmp_path / f"version{len(made)}")
        return made[-1]

    return name


@pytest.fixture
def update(versions: Callable[[], Path]) -> Update:
    """Give a function that updates a bundle and reads the new one."""

    def run(bundle: Bundle, items: pa.Table | None = None, **settings: Any) -> Bundle:
        given: dict[str, Any] = {"recall": RECALL, "max_share": 0.5, **settings}
        updated = update_bundle(bundle, versions(), items=items, **given)
        assert isinstance(updated, Updated)
        return read_bundle(updated.path)

    return run


@pytest.fixture
def compact(versions: Callable[[], Path]) -> Update:
    """Give a function that compacts a bundle and reads the new one."""
    return lambda bundle: read_bundle(compact_bundle(bundle, versions(), recall=RECALL).path)
