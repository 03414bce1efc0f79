"""Bundles of untrained towers, whose items have columns of every type that a table can hold."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from recsys.bundle import Bundle
from recsys.data import (
    FilterSettings,
    RawEntities,
    RawLog,
    SplitSettings,
    prepare_dataset,
)
from recsys.export import ExportRequest, write_export
from tests.untrained import write_untrained

MakeBundle = Callable[..., Bundle]
Export = Callable[..., Path]

ODD = ["a/b", "100%", "🎈 fête", " blank ", "007", "NA", 'quote"\\', "../../etc/passwd", "%2F\n"]
MANY = [f"i{n}" for n in range(60)]


def odd_columns() -> dict[str, pa.Array]:
    """Make columns of 9 items, with what is hard to write in each type."""
    day, noon = dt.date(1969, 7, 20), dt.datetime(2024, 2, 29, 12, 0, 0, 123456)
    lists = [["x", 'y"'], [], None, ["🎈", None, "x"], ["x"], ["x"], ["x"], ["x"], ["x", "\t"]]
    paris = pa.timestamp("ms", "Europe/Paris")
    return {
        "title": pa.array([*ODD[:8], None]),
        "price": pa.array([0.1, 2.0, float("nan"), float("inf"), -1e-7, 1e300, None, 3.5, 4.0]),
        "big": pa.array([2**53 + 1, -(2**63), 2**63 - 1, None, 0, 1, 2, 3, 4], pa.int64()),
        "cost": pa.array([Decimal("12.50"), Decimal("0.01"), *[None] * 7], pa.decimal128(12, 2)),
        "kind": pa.array(["a", "b", None] * 3).dictionary_encode(),
        "day": pa.array([day, None, *[dt.date(2024, 1, 1)] * 7]),
        "sold": pa.array([noon, None, *[dt.datetime(2001, 1, 1)] * 7], pa.timestamp("us")),
        "shown": pa.array([1_709_204_400_000, None, *[0] * 7], paris),  # 2024-02-29T11:00 UTC
        "at": pa.array([dt.time(23, 59, 58), None, *[dt.time(0)] * 7]),
        "took": pa.array([1500, None, *[0] * 7], pa.duration("ms")),
        "small": pa.array([255, None, *[1] * 7], pa.uint8()),
        "new": pa.array([True, False, None] * 3),
        "tags": pa.array(lists, pa.list_(pa.string())),
        "sizes": pa.array([[1, 2**53 + 1], None, *[[3]] * 7], pa.large_list(pa.int64())),
        "bytes": pa.array([b"\xff\x00"] * 9),
        "nothing": pa.nulls(9),
        "a.b": pa.array(list("123456789")),
        "a_b": pa.array(list("987654321")),
        "_id": pa.array([1.5] * 9, pa.float32()),
        "vector": pa.array(["not one"] * 9),
        "größe": pa.array([1, 2, 3] * 3, pa.int32()),
    }


@pytest.fixture
def make_bundle(tmp_path: Path) -> MakeBundle:
    """Build a bundle in which user u<n> chose some of the items."""

    def make(ids: list[str], columns: dict[str, pa.Array] | None = None, **spec: Any) -> Bundle:
        pairs = [
            (n, (7 * n + 3 * m) % len(ids)) for n in range(max(len(ids), 12)) for m in range(5)
        ]
        log = {
            "user_id": pa.array([f"u{user}" for user, _ in pairs], pa.large_string()),
            "item_id": pa.array([ids[item] for _, item in pairs], pa.large_string()),
            "timestamp": pa.array([1_700_000_000_000_000 + n for n in range(len(pairs))]),
        }
        items = None
        if columns is not None:
            items = RawEntities(
                pa.table({"id": pa.array(ids, pa.large_string()), **columns}), {}, []
            )
        path = prepare_dataset(
            RawLog(pa.table(log), "time", {}, len(pairs), []),
            items=items,
            users=None,
            output=tmp_path / "dataset",
            filters=FilterSettings(duplicates="keep_all"),
            split=SplitSettings(rule="given"),
            seed=0,
            exclude_seen=True,
        )
        return write_untrained(tmp_path / "bundle", path, random_bias=True, embedding_dim=8, **spec)

    return make


@pytest.fixture
def odd_bundle(make_bundle: MakeBundle) -> Bundle:
    """Build a bundle of 9 items with odd ids and columns of every type."""
    return make_bundle(ODD, odd_columns())


@pytest.fixture
def export(tmp_path: Path) -> Export:
    """Give a function that exports a bundle and gives the folder."""

    def run(bundle: Bundle, form: str, **changes: Any) -> Path:
        asked: dict[str, Any] = {"name": "items", "columns": None, "users": False, "file_mb": 16}
        request = ExportRequest(form=form, **(asked | changes))
        return write_export(tmp_path / "export", bundle, request)

    return run
