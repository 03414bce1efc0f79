"""Own items with a bonus, over every index and the dial, against a slow loop over the catalogue."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, Ragged, ShapeError
from recsys.index import (
    ExactIndex,
    FaissIndex,
    Hits,
    IndexSettings,
    OwnItems,
    PopularityDial,
    ScoredCandidates,
    Search,
    search_with_bonus,
)

NUM = 300
SETTINGS = {
    "flat": IndexSettings(kind="flat"),
    "hnsw": IndexSettings(kind="hnsw", m=8, ef_construction=40, ef_search=64),
    "ivf_flat": IndexSettings(kind="ivf_flat", num_lists=10, num_probes=4),
}


def make_vectors(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def make_lists(num_lists: int, *, most: int, seed: int, beyond: int = 0) -> Ragged:
    """Make lists of distinct rising rows, some of them up to `beyond` rows behind the catalogue."""
    rng = np.random.default_rng(seed)
    rows = [
        np.sort(rng.permutation(NUM + beyond)[: rng.integers(0, most + 1)])
        for _ in range(num_lists)
    ]
    offsets = np.cumsum([0, *map(len, rows)])
    return Ragged(offsets, np.concatenate([*rows, np.zeros(0, np.int64)]).astype(np.int64))


def make_own(num_lists: int, *, most: int = 20, seed: int = 0) -> OwnItems:
    rows = make_lists(num_lists, most=most, seed=seed, beyond=20)
    bonus = 2 * np.random.default_rng(seed + 1).exponential(size=len(rows.rows))
    return OwnItems(rows, np.where(bonus < 0.3, 0.0, bonus))


def slow_search(
    scores: NDArray[np.float32],
    own: OwnItems,
    k: int,
    exclude: Ragged | None = None,
    allowed: NDArray[np.int64] | Ragged | None = None,
) -> list[list[tuple[int, float]]]:
    """Rank every candidate of the full matrix [B, C] of scores, one query after the other."""
    lists = []
    for query, row in enumerate(scores.astype(np.float64)):
        added = row.copy()
        first = own.rows.offsets[query]
        for place, item in enumerate(own.rows[query]):
            if item < len(row):
                added[item] += own.bonus[first + place]
        may = set(range(len(row)))
        if allowed is not None:
            may &= set((allowed[query] if isinstance(allowed, Ragged) else allowed).tolist())
        if exclude is not None:
            may -= set(exclude[query].tolist())
        final = added.astype(np.float32)
        order = sorted(may, key=lambda item: (-final[item], item))
        lists.append([(item, float(final[item])) for item in order[:k]])
    return lists


def matrix(queries: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Score all: [B, C], the best of the interests; sums in float64, one candidate at a time."""
    wide = queries if queries.ndim == 3 else queries[:, None]
    products = wide[:, :, None].astype(np.float64) * vectors.astype(np.float64)
    return np.asarray(products.sum(axis=3).max(axis=1), np.float32)


def as_lists(hits: Hits) -> list[list[tuple[int, float]]]:
    return [list(zip(rows.tolist(), scores.tolist(), strict=True)) for rows, scores in hits]


def test_a_bonus_lifts_own_items_alone_worked_by_hand() -> None:
    # Scores 4, 3, 2, 1, 0. Query 0 had items 3 and 4: 1 + 2.5 = 3.5 and 0 + 4 = 4, which is after
    # item 0 of the same score. Query 1 had nothing.
    index = ExactIndex(np.array([[4.0], [3.0], [2.0], [1.0], [0.0]], np.float32))
    own = OwnItems(Ragged(np.array([0, 2, 2]), np.array([3, 4])), np.array([2.5, 4.0]))
    hits = search_with_bonus(index.search, np.ones((2, 1), np.float32), 3, own)
    assert as_lists(hits) == [[(0, 4.0), (4, 4.0), (3, 3.5)], [(0, 4.0), (1, 3.0), (2, 2.0)]]
    out = Ragged(np.array([0, 1, 1]), np.array([4]))
    hits = search_with_bonus(index.search, np.ones((2, 1), np.float32), 2, own, exclude=out)
    assert as_lists(hits) == [[(0, 4.0), (3, 3.5)], [(0, 4.0), (1, 3.0)]]
    few = np.array([1, 2, 4])
    hits = search_with_bonus(index.search, np.ones((2, 1), np.float32), 2, own, allowed=few)
    assert as_lists(hits) == [[(4, 4.0), (1, 3.0)], [(1, 3.0), (2, 2.0)]]


@pytest.mark.parametrize("kind", ["exact", "flat"])
@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**16),
    k=st.integers(1, 40),
    interests=st.sampled_from([0, 1, 3]),
    filters=st.sampled_from(["none", "exclude", "rows", "lists", "all"]),
    ties=st.booleans(),
)
def test_equals_a_slow_ranking_of_the_full_matrix(
    kind: str, seed: int, k: int, interests: int, filters: str, ties: bool
) -> None:
    shape = (5, interests, 4) if interests else (5, 4)
    vectors, queries = make_vectors(NUM, 4, seed=seed), make_vectors(*shape, seed=seed + 1)
    own = make_own(5, seed=seed)
    if ties:  # whole numbers: many equal scores, with a bonus too
        vectors, queries = np.rint(vectors), np.rint(queries)
        own = OwnItems(own.rows, np.rint(own.bonus))
    index = ExactIndex(vectors) if kind == "exact" else FaissIndex.build(vectors, SETTINGS[kind])
    limits: dict[str, Any] = {}
    if filters in ("exclude", "all"):
        limits["exclude"] = make_lists(5, most=40, seed=seed + 2, beyond=5)
    if filters in ("rows", "all"):
        limits["allowed"] = np.flatnonzero(np.random.default_rng(seed).random(NUM) < 0.6)
    if filters == "lists":
        limits["allowed"] = make_lists(5, most=NUM, seed=seed + 3, beyond=5)
    found = search_with_bonus(index.search, queries, k, own, **limits)
    assert as_lists(found) == slow_search(matrix(queries, vectors), own, k, **limits)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**16), alpha=st.floats(-3, 3), k=st.integers(1, 30))
def test_a_bonus_stands_on_top_of_the_popularity_dial(seed: int, alpha: float, k: int) -> None:
    vectors, queries, own = make_vectors(NUM, 4), make_vectors(4, 4, seed=seed), make_own(4)
    popularity = np.log(np.random.default_rng(3).exponential(size=NUM))
    dial = PopularityDial(vectors, popularity, 0.5)
    found = search_with_bonus(partial(dial.search, alpha=alpha), queries, k, own)
    wider = np.concatenate([vectors, popularity[:, None].astype(np.float32)], axis=1)
    weight = np.full((4, 1), -alpha * 0.5, np.float32)
    scores = matrix(np.concatenate([queries, weight], axis=1), wider)
    assert as_lists(found) == slow_search(scores, own, k)


@pytest.mark.parametrize("kind", ["hnsw", "ivf_flat"])
def test_own_items_are_scored_whatever_an_approximate_index_finds(kind: str) -> None:
    vectors, queries, own = make_vectors(NUM, 8), make_vectors(60, 8, seed=1), make_own(60)
    index = FaissIndex.build(vectors, SETTINGS[kind])
    found = search_with_bonus(index.search, queries, 20, own)
    scores = matrix(queries, vectors)
    # The best of what it finds by itself and the own items, from the full matrix.
    candidates = index.search(queries, 20).lists
    both = [np.unique(np.concatenate([candidates[n], own.rows[n]])) for n in range(60)]
    lists = Ragged(np.cumsum([0, *map(len, both)]), np.concatenate(both))
    assert as_lists(found) == slow_search(scores, own, 20, allowed=lists)


@pytest.mark.parametrize("kind", ["exact", "flat", "hnsw"])
def test_the_answer_does_not_depend_on_batching(kind: str) -> None:
    vectors, queries, own = make_vectors(NUM, 8), make_vectors(600, 8, seed=1), make_own(600)
    exclude = make_lists(600, most=30, seed=4)
    allowed = make_lists(600, most=NUM, seed=5)
    index = ExactIndex(vectors) if kind == "exact" else FaissIndex.build(vectors, SETTINGS[kind])
    for limit in (None, allowed):
        whole = search_with_bonus(index.search, queries, 9, own, exclude=exclude, allowed=limit)
        for size in (1, 7, 512):
            parts: list[list[tuple[int, float]]] = []
            for start in range(0, 600, size):
                stop = min(start + size, 600)
                hits = search_with_bonus(
                    index.search,
                    queries[start:stop],
                    9,
                    own.slice(start, stop),
                    exclude=exclude.slice(start, stop),
                    allowed=None if limit is None else limit.slice(start, stop),
                )
                parts += as_lists(hits)
            assert parts == as_lists(whole)


def test_thousands_of_own_items_are_merged() -> None:
    vectors, queries = make_vectors(NUM, 4), make_vectors(300, 4, seed=1)
    every = Ragged(np.arange(301) * NUM, np.tile(np.arange(NUM), 300))
    bonus = np.random.default_rng(0).exponential(size=300 * NUM)
    own = OwnItems(every, bonus)
    found = search_with_bonus(ExactIndex(vectors).search, queries, 5, own)
    assert as_lists(found) == slow_search(matrix(queries, vectors), own, 5)


def test_without_own_items_the_search_itself_answers() -> None:
    vectors, queries = make_vectors(NUM, 4), make_vectors(3, 4, seed=1)
    index, calls = ExactIndex(vectors), []

    def search(*args: Any, **options: Any) -> Hits:
        calls.append(options["allowed"])
        return index.search(*args, **options)

    plain = as_lists(index.search(queries, 6))
    assert as_lists(search_with_bonus(search, queries, 6, None)) == plain
    assert calls == [None]
    nobody = OwnItems(Ragged.empty(3), np.zeros(0))
    assert as_lists(search_with_bonus(search, queries, 6, nobody)) == plain
    assert len(search_with_bonus(search, queries[:0], 6, nobody.slice(0, 0))) == 0


def test_one_search_serves_any_bonus() -> None:
    vectors, queries, own = make_vectors(NUM, 4), make_vectors(5, 4, seed=1), make_own(5)
    search: Search = ExactIndex(vectors).search
    found = ScoredCandidates.find(search, queries, 8, own.rows)
    for factor in (0.0, 0.2, 30.0):
        bonus = factor * own.bonus
        whole = search_with_bonus(search, queries, 8, OwnItems(own.rows, bonus))
        assert as_lists(found.top(bonus)) == as_lists(whole)


def test_bad_own_items_are_refused() -> None:
    rows = Ragged(np.array([0, 2]), np.array([1, 4]))
    with pytest.raises(ShapeError, match="bonus"):
        OwnItems(rows, np.ones(3))
    for bonus in ([1.0, -0.1], [1.0, np.nan], [np.inf, 1.0]):
        with pytest.raises(ArgumentError, match="`bonus` must hold finite numbers of at least 0"):
            OwnItems(rows, np.array(bonus))
    for bad in ([4, 1], [1, 1]):
        with pytest.raises(ArgumentError, match="`rows` must hold lists of rising rows"):
            OwnItems(Ragged(np.array([0, 2]), np.array(bad)), np.ones(2))
    with pytest.raises(ArgumentError, match="`rows` must hold rows from 0, got -1"):
        OwnItems(Ragged(np.array([0, 2]), np.array([-1, 1])), np.ones(2))
    index = ExactIndex(make_vectors(NUM, 4))
    with pytest.raises(ArgumentError, match="`own` must hold 3 lists, got 1"):
        search_with_bonus(index.search, make_vectors(3, 4), 2, OwnItems(rows, np.ones(2)))
