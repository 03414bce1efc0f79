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
LISTS = ["ivf_flat", "ivf_sq8", "ivf_fp16", "ivf_pq", "ivf_pq_fast"]
KINDS = ["auto", "flat", "hnsw", "hnsw_sq8", *LISTS]


def two_lists(kind: str, *, num_probes: int = 1) -> IndexSettings:
    """Settings that 16 items train."""
    return IndexSettings(kind=kind, num_lists=2, num_probes=num_probes, num_codes=2, code_bits=4)


def read_rows(case: str) -> list[tuple[str, str]]:
    with (CASES / case / "interactions.csv").open(newline="") as file:
        return [(row["user_id"], row["item_id"]) for row in csv.DictReader(file)]


def read_items(case: str) -> list[str]:
    with (CASES / case / "catalog.csv").open(newline="") as file:
        return [row["item_id"] for row in csv.DictReader(file)]


@pytest.mark.parametrize("kind", KINDS)
def test_b23_fill_values_do_not_look_like_items(make_bundle: MakeBundle, kind: str) -> None:
    lookup = Lookup(make_bundle(read_rows("B23"), index=two_lists(kind)))
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


@pytest.mark.parametrize("kind", KINDS)
def test_b27_lists_have_the_length_that_filters_leave(make_bundle: MakeBundle, kind: str) -> None:
    bundle = make_bundle(read_rows("B27"), index=two_lists(kind))
    assert bundle.index.kind == ("flat" if kind == "auto" else kind)
    lookup = Lookup(bundle)
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
        ("IVF1024,SQ8", "flat", 1024),
        ("IVF1024,SQfp16", "flat", 1024),
        ("IVF64,PQ8x4fs", "flat", 64),
        ("HNSW32", "hnsw", None),
        ("HNSW32,SQ8", "hnsw_sq8", None),
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


@pytest.mark.parametrize("kind", LISTS)
def test_b25_every_kind_with_more_lists_than_items_falls_back(
    make_bundle: MakeBundle, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    chosen = IndexSettings(kind=kind, num_lists=1024, num_codes=2)
    with caplog.at_level(logging.WARNING, logger="recsys.index"):
        bundle = make_bundle(read_rows("B25"), index=chosen)
    (warning,) = [one for one in caplog.records if one.name.startswith("recsys.index")]
    assert bundle.index.kind == "flat"
    assert "48 vectors" in warning.getMessage()
    assert "needs 1024;" in warning.getMessage()
    assert Lookup(bundle).neighbours(["i000"], k=5).num_rows == 5


@pytest.mark.parametrize("kind", LISTS)
def test_b25_few_lists_are_built_with_one_warning_that_they_are_trained_poorly(
    make_bundle: MakeBundle, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    chosen = two_lists(kind, num_probes=2)
    with caplog.at_level(logging.WARNING, logger="recsys.index"):
        bundle = make_bundle(read_rows("B25"), index=chosen)
    (warning,) = [one for one in caplog.records if one.name.startswith("recsys.index")]
    assert "48 vectors train an index" in warning.getMessage()
    assert bundle.index.kind == kind
    for k, wanted in ((5, 5), (47, 47), (1000, 47)):  # the item asked about is left out
        names = Lookup(bundle).neighbours(["i000"], k=k)["item_id"].to_pylist()
        assert len(names) == len(set(names)) == wanted


@pytest.mark.parametrize("factory", ["IVF0,Flat", "IVF0,SQ8", "HNSW32,PQ8", "nonsense"])
def test_b25_impossible_settings_are_refused_with_their_value(factory: str) -> None:
    with pytest.raises(ConfigError, match=factory):
        IndexSettings(kind="factory", factory=factory)
