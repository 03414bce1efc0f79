"""Lookups on small catalogues with strange ids, with filters, and with settings too large."""

import csv
import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from recsys.bundle import Bundle
from recsys.foundations import ConfigError
from recsys.index import IndexSettings
from recsys.serving import Lookup, UserRequest

MakeBundle = Callable[..., Bundle]
CASES = Path(__file__).parents[1] / "cases"


def read_rows(case: str) -> list[tuple[str, str]]:
    with (CASES / case / "interactions.csv").open(newline="") as file:
        return [(row["user_id"], row["item_id"]) for row in csv.DictReader(file)]


def read_items(case: str) -> list[str]:
    with (CASES / case / "catalog.csv").open(newline="") as file:
        return [row["item_id"] for row in csv.DictReader(file)]


@pytest.mark.parametrize("kind", ["flat", "hnsw"])
def test_b23_fill_values_do_not_look_like_items(make_bundle: MakeBundle, kind: str) -> None:
    lookup = Lookup(make_bundle(read_rows("B23"), index=IndexSettings(kind=kind)))
    items = ["-1", "0", "[PAD]"]
    for item in items:
        for k, wanted in ((1, 1), (3, 2), (10, 2), (1000, 2)):
            found = lookup.neighbours([item], k=k)
            names = found["item_id"].to_pylist()
            assert len(names) == len(set(names)) == wanted
            assert set(names) <= set(items) - {item}
            assert np.isfinite(found["score"].to_numpy()).all()
    blocks = list(lookup.neighbour_blocks(items, k=5, exclude=items))
    assert [block.hits.lengths.tolist() for block in blocks] == [[0, 0, 0]]
    (users,) = lookup.recommend_blocks(
        [f"u{n:02}" for n in range(25)], UserRequest(k=5, exclude=items)
    )
    assert users.hits.lengths.tolist() == [0] * 25


@pytest.mark.parametrize("kind", ["flat", "hnsw"])
def test_b27_lists_have_the_length_that_filters_leave(make_bundle: MakeBundle, kind: str) -> None:
    lookup = Lookup(make_bundle(read_rows("B27"), index=IndexSettings(kind=kind)))
    names = [f"f{n:02}" for n in range(20)]
    counts = [
        lookup.recommend(["allbut2"], k=10).num_rows,
        lookup.recommend(["all"], k=10).num_rows,
        lookup.recommend(["one"], k=10).num_rows,
        lookup.recommend(["one"], k=10, exclude=names[1:6]).num_rows,
        lookup.recommend(["one"], k=10, exclude=["unknown-id"]).num_rows,
        lookup.neighbours(["f00"], k=10, exclude=names[5:]).num_rows,
        lookup.neighbours(["f00"], k=10, allowed=names[1:4]).num_rows,
    ]
    assert counts == [2, 0, 10, 10, 10, 4, 3]
    left = set(names) - {item for user, item in read_rows("B27") if user == "allbut2"}
    assert set(lookup.recommend(["allbut2"], k=10)["item_id"].to_pylist()) == left


@pytest.mark.parametrize(
    ("factory", "kind", "needed"),
    [
        ("IVF1024,Flat", "flat", 1024),
        ("IVF64,PQ8", "flat", 256),
        ("IVF16,PQ4x8", "flat", 256),
        ("HNSW32", "hnsw", None),
        ("Flat", "flat", None),
    ],
)
def test_b25_settings_beyond_the_catalogue_fall_back_with_one_warning(
    make_bundle: MakeBundle,
    factory: str,
    kind: str,
    needed: int | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    chosen = IndexSettings(kind="factory", factory=factory)
    with caplog.at_level(logging.WARNING, logger="recsys.index"):
        bundle = make_bundle(read_rows("B25"), index=chosen)
    warnings = [record for record in caplog.records if record.name.startswith("recsys.index")]
    assert bundle.num_items == len(read_items("B25")) == 48
    assert bundle.index.kind == kind
    assert len(warnings) == (needed is not None)
    if needed is not None:
        assert "48 vectors" in warnings[0].getMessage()
        assert f"needs {needed};" in warnings[0].getMessage()
    assert Lookup(bundle).neighbours(["i000"], k=5).num_rows == 5


@pytest.mark.parametrize("factory", ["IVF0,Flat", "nonsense"])
def test_b25_impossible_settings_are_refused_with_their_value(factory: str) -> None:
    with pytest.raises(ConfigError, match=factory):
        IndexSettings(kind="factory", factory=factory)
