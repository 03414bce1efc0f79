"""Random updates and compactions, against a dictionary of items that are ranked by hand."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from recsys.bundle import Bundle
from recsys.index import IndexSettings
from recsys.serving import Lookup

MakeBundle = Callable[..., Bundle]
Update = Callable[..., Bundle]


class Catalogue:
    """What should be: the vector, the price and the training count of each item by id."""

    def __init__(self, lookup: Lookup) -> None:
        self.model = lookup
        ids = lookup.bundle.items.vocabulary.ids.to_pylist()
        vectors = np.asarray(lookup.bundle.item_vectors)
        prices = lookup.describe_items(ids)["price"].to_pylist()
        counts = lookup.bundle.items.counts.tolist()
        self.vectors = dict(zip(ids, vectors.astype(np.float64), strict=True))
        self.prices = dict(zip(ids, prices, strict=True))
        self.counts = dict(zip(ids, counts, strict=True))
        self.live = set(ids)

    def put(self, items: pa.Table) -> None:
        vectors = self.model.embed_items(items.rename_columns(["item_id", *items.column_names[1:]]))
        for place, one in enumerate(items["id"].to_pylist()):
            given = vectors["vector"][place].as_py()
            if "vector" in items.column_names and items["vector"][place].as_py() is not None:
                given = items["vector"][place].as_py()
            self.vectors[one] = np.array(given, np.float64)
            self.prices[one] = items["price"][place].as_py()
            self.counts.setdefault(one, 0)
            self.live.add(one)

    def best(self, query: np.ndarray, allowed: set[str]) -> dict[str, float]:
        query = query.astype(np.float64)
        return {one: float(query @ self.vectors[one]) for one in sorted(self.live & allowed)}


def change_at_random(
    lookup: Lookup,
    truth: Catalogue,
    update: Update,
    make_items: Callable[..., pa.Table],
    rng: np.random.Generator,
) -> Lookup:
    """Add, replace, restore and withdraw some items."""
    known = sorted(truth.vectors)
    fresh = [f"new{rng.integers(1000)}" for _ in range(rng.integers(0, 3))]
    put = sorted({*rng.choice(known, rng.integers(0, 4), replace=False).tolist(), *fresh})
    items = make_items(put, seed=int(rng.integers(1 << 30))) if put else None
    if items is not None and rng.random() < 0.3:
        width = lookup.bundle.model.output_dim
        own = [None if rng.random() < 0.5 else rng.normal(size=width).tolist() for _ in put]
        items = items.append_column("vector", pa.array(own, pa.list_(pa.float32())))
    left = sorted(truth.live - set(put))
    gone = rng.choice(left, min(len(left) - 8, int(rng.integers(0, 3))), replace=False).tolist()
    if items is None and not gone:
        return lookup
    bundle = update(lookup.bundle, items, remove=gone)
    if items is not None:
        truth.put(items)
    truth.live -= set(gone)
    return Lookup(bundle)


def check_lists(lookup: Lookup, truth: Catalogue, rng: np.random.Generator, *, exact: bool) -> None:
    """Compare what users get with the products by hand."""
    users, k = [f"u{n}" for n in rng.permutation(20)[:4]], int(rng.integers(1, 12))
    limit = float(rng.integers(1, 60))
    where = None if rng.random() < 0.5 else f"price <= {limit}"
    passing = {one for one, price in truth.prices.items() if where is None or price <= limit}
    excluded = set(rng.choice(sorted(truth.live), 2, replace=False).tolist())
    found = lookup.recommend(users, k=k, exact=exact, where=where, exclude=sorted(excluded))
    vectors = lookup.embed_users(users)
    for place, user in enumerate(users):
        scores = truth.best(np.array(vectors["vector"][place].as_py()), passing - excluded)
        got = found.filter(pc.equal(found["user_id"], user))
        ids = got["item_id"].to_pylist()
        assert set(ids) <= scores.keys()
        assert len(ids) == len(set(ids)) == min(k, len(scores))
        np.testing.assert_allclose([scores[one] for one in ids], got["score"], rtol=0, atol=1e-5)
        best = sorted(scores.values(), reverse=True)[: len(ids)]
        np.testing.assert_allclose(got["score"], best, rtol=0, atol=1e-5)


def check_popular(lookup: Lookup, truth: Catalogue) -> None:
    """Who is not known gets the items with the largest counts, of those that are there."""
    found = lookup.recommend(["nobody"], k=9)
    counts = sorted((truth.counts[one] for one in truth.live), reverse=True)
    assert found["fallback"].to_pylist() == [True] * len(found)
    assert set(found["item_id"].to_pylist()) <= truth.live
    assert found["score"].to_pylist() == counts[: min(9, len(counts))]


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf_flat"])
def test_any_series_of_changes_gives_what_the_items_by_hand_give(
    make_bundle: MakeBundle,
    update: Update,
    compact: Update,
    make_items: Callable[..., pa.Table],
    kind: str,
) -> None:
    rng = np.random.default_rng(sum(map(ord, kind)))
    settings = IndexSettings(kind=kind, m=4, num_lists=3 if kind == "ivf_flat" else None)
    lookup = Lookup(make_bundle(settings, item_bias=True))
    truth = Catalogue(lookup)
    for step in range(24):
        lookup = change_at_random(lookup, truth, update, make_items, rng)
        if step % 6 == 5 and len(lookup.bundle.index_changes.rows):
            lookup = Lookup(compact(lookup.bundle))
            assert len(lookup.bundle.index_changes.rows) == 0
        assert lookup.bundle.num_items == len(truth.vectors)
        check_lists(lookup, truth, rng, exact=kind != "flat")
        check_popular(lookup, truth)
        through = lookup.recommend([f"u{n}" for n in range(5)], k=8)  # approximate, but whole
        assert set(through["item_id"].to_pylist()) <= truth.live
        assert through["rank"].to_pylist() == [*range(1, 9)] * 5
        near = lookup.neighbours(k=5)
        assert set(near["item_id"].to_pylist()) <= truth.live
        assert set(near["query_item_id"].to_pylist()) == truth.live
    assert len(truth.live) < len(truth.vectors)
    assert lookup.bundle.num_items > 30


def test_an_index_finds_nothing_that_is_withdrawn_whatever_is_asked(
    make_bundle: MakeBundle, update: Update
) -> None:
    bundle = make_bundle(IndexSettings(kind="hnsw", m=4), repeats_weight=2.0, repeats_decay=0.9)
    gone = [f"i{n}" for n in range(0, 26, 3)]
    lookup = Lookup(update(bundle, remove=gone))
    for settings in (
        {},
        {"exact": True},
        {"popularity_alpha": 1.0},
        {"popularity_alpha": -1.0, "allowed": [*gone, "i1"]},
        {"allowed": [*gone, "i1", "i2"]},
        {"where": "price > 0"},
        {"where": f"item_id in [{', '.join(gone)}]"},
        {"exclude_seen": True, "histories": {"u3": gone, "nobody": gone}},
        {"exclude_seen": False, "histories": {"u3": gone, "nobody": []}},
    ):
        for k in (3, 100):
            found = lookup.recommend(["u1", "u3", "nobody"], k=k, **settings)
            assert not set(found["item_id"].to_pylist()) & set(gone), settings
    assert len(lookup.recommend(["u1"], k=100, exclude_seen=False)) == 30 - len(gone)
    near = lookup.neighbours(gone[:2], k=100, allowed=[*gone, "i1"])
    assert near["item_id"].to_pylist() == ["i1", "i1"]
