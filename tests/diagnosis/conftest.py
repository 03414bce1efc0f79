"""A tiny catalogue with a model's vectors, rows to measure on, and a prepared data set."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from recsys.data import (
    FilterSettings,
    PreparedDataset,
    RawLog,
    SplitSettings,
    prepare_dataset,
    read_prepared,
)
from recsys.diagnosis import (
    KINDS,
    BatchPeers,
    DrawnPeers,
    Estimator,
    Material,
    RowErrors,
    Subject,
    measure_rows,
)

NUM_ITEMS = 40


def make_subject(*, num_rows: int = 24, seed: int = 0, own_batch: bool = False) -> Subject:
    """Make rows whose scores follow a skewed popularity plus something of their own."""
    rng = torch.Generator().manual_seed(seed)
    items = torch.randn(NUM_ITEMS, 6, generator=rng)
    items[:, 5] = -torch.arange(1, NUM_ITEMS + 1).log()  # one popular item, many rare ones
    queries = torch.randn(num_rows, 6, generator=rng) / 2
    queries[:, 5] = 1
    positives = torch.multinomial((queries @ items.T).softmax(dim=1), 1, generator=rng).squeeze(1)
    peers = BatchPeers(positives) if own_batch else DrawnPeers(torch.arange(NUM_ITEMS))
    last = torch.randint(-1, NUM_ITEMS, (num_rows,), generator=rng)
    return Subject(queries, positives, last, items, 0.8, peers)


def make_material(batch_size: int = 24) -> Material:
    """Make counts in the order of the items, and pairs of neighbouring items."""
    counts = np.ceil(200 / np.arange(1, NUM_ITEMS + 1)).astype(np.int64)
    rows = np.arange(NUM_ITEMS)
    return Material(
        counts=counts,
        pairs=(rows, np.roll(rows, 1)),
        batch_size=batch_size,
        unigram_share=0.3,
        ess_quantile=0.0,
        burn_in_share=0.25,
        max_exact_items=1000,
    )


@pytest.fixture
def subject() -> Subject:
    """Give rows of validation positives."""
    return make_subject()


@pytest.fixture
def batch() -> Subject:
    """Give rows that are a training batch."""
    return make_subject(own_batch=True, seed=1)


@pytest.fixture
def material() -> Material:
    """Give what estimators are built of."""
    return make_material()


@pytest.fixture
def build(material: Material) -> Callable[..., Estimator]:
    """Give a function from a name to the estimator; keywords change the material."""

    def of(name: str, **changes: object) -> Estimator:
        estimator = KINDS[name].build(replace(material, **changes))  # type: ignore[arg-type]
        assert not isinstance(estimator, str), estimator
        return estimator

    return of


@pytest.fixture
def measure(subject: Subject) -> Callable[..., RowErrors]:
    """Give a function that measures an estimator at a size on the rows."""

    def of(estimator: Estimator, size: int, *, draws: int = 400) -> RowErrors:
        return measure_rows(
            estimator, subject, size, num_draws=draws, stream=(0, "test"), advance=lambda _: None
        )

    return of


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> PreparedDataset:
    """Prepare a log of skewed popularity, with one validation event a user."""
    rng = np.random.default_rng(0)
    num_users, num_items, per_user = 150, 60, 12
    weights = 1 / np.arange(1, num_items + 1)
    items = np.concatenate(
        [
            rng.choice(num_items, per_user, replace=False, p=weights / weights.sum())
            for _ in range(num_users)
        ]
    )
    users = np.repeat(np.arange(num_users), per_user)
    table = pa.table(
        {
            "user_id": pa.array([f"u{user}" for user in users], pa.large_string()),
            "item_id": pa.array([f"i{item}" for item in items], pa.large_string()),
            "timestamp": pa.array(1_700_000_000_000_000 + rng.permutation(len(users)) * 10**6),
        }
    )
    path: Path = prepare_dataset(
        RawLog(table, "time", {}, table.num_rows, []),
        items=None,
        users=None,
        output=tmp_path_factory.mktemp("diagnosis") / "dataset",
        filters=FilterSettings(),
        split=SplitSettings(rule="leave_last_out"),
        seed=0,
        exclude_seen=True,
    )
    return read_prepared(path)
