"""Exact search against a slow float64 ranking, under filters, ties and every way of batching."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from recsys.foundations import ArgumentError, Ragged, ShapeError
from recsys.index import ExactIndex, Hits


def make_vectors(count: int, *, dim: int = 8, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, dim), dtype=np.float32)


def make_lists(num_lists: int, num_rows: int, *, total: int, seed: int = 0) -> Ragged:
    rng = np.random.default_rng(seed)
    owners, rows = rng.integers(0, num_lists, total), rng.integers(0, num_rows, total)
    return Ragged.from_pairs(owners, rows, num_lists)


def slow_search(
    queries: NDArray[np.float32],
    vectors: NDArray[np.float32],
    k: int,
    exclude: list[set[int]],
    allowed: list[set[int]],
) -> list[list[int]]:
    scores = (queries.astype(np.float64) @ vectors.T.astype(np.float64)).astype(np.float32)
    return [
        sorted(may - out, key=lambda row: (-line[row], row))[:k]
        for line, out, may in zip(scores, exclude, allowed, strict=True)
    ]


def lists_of(hits: Hits) -> list[list[int]]:
    return [rows.tolist() for rows, _ in hits]


def test_gives_the_order_worked_by_hand() -> None:
    vectors = np.array([[1, 0], [0, 2], [3, 0], [1, 0]], np.float32)
    query = np.array([[1, 1]], np.float32)  # scores 1, 2, 3, 1: the tie goes by row
    hits = ExactIndex(vectors).search(query, 3)
    assert hits.candidate_rows.tolist() == [2, 1, 0]
    assert hits.scores.tolist() == [3.0, 2.0, 1.0]
    assert hits.ranks().tolist() == [1, 2, 3]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    k=st.integers(1, 30),
    count=st.integers(1, 400),
    levels=st.sampled_from([2, 3, 1000]),
    filtering=st.sampled_from(["all", "shared", "own"]),
)
def test_equals_the_slow_ranking(
    seed: int, k: int, count: int, levels: int, filtering: str
) -> None:
    rng = np.random.default_rng(seed)
    vectors = (rng.integers(0, levels, (count, 3)) / 7).astype(np.float32)  # few levels: many ties
    queries = (rng.integers(-2, 3, (5, 3)) / 3).astype(np.float32)
    exclude = make_lists(5, count + 3, total=count, seed=seed)
    own = make_lists(5, count + 3, total=2 * count, seed=seed + 1)
    shared = np.unique(rng.integers(0, count + 3, count // 2))
    allowed = {"all": None, "shared": shared, "own": own}[filtering]
    may = {
        "all": [set(range(count))] * 5,
        "shared": [set(shared.tolist()) & set(range(count))] * 5,
        "own": [set(own[i].tolist()) & set(range(count)) for i in range(5)],
    }[filtering]
    hits = ExactIndex(vectors).search(queries, k, exclude=exclude, allowed=allowed)
    out = [set(exclude[i].tolist()) for i in range(5)]
    assert lists_of(hits) == slow_search(queries, vectors, k, out, may)


@pytest.mark.parametrize("k", [3, 700])
def test_equals_the_slow_ranking_over_many_blocks_of_candidates(k: int) -> None:
    vectors, queries = make_vectors(21_000), make_vectors(9, seed=1)
    exclude = make_lists(9, 21_000, total=30_000)
    hits = ExactIndex(vectors).search(queries, k, exclude=exclude)
    out, may = [set(exclude[i].tolist()) for i in range(9)], [set(range(21_000))] * 9
    assert lists_of(hits) == slow_search(queries, vectors, k, out, may)


@pytest.mark.parametrize("batch", [1, 7, 512, 2000])
@pytest.mark.parametrize("threads", [1, 2])
def test_does_not_depend_on_batches_or_threads(batch: int, threads: int) -> None:
    vectors, queries = make_vectors(9000, dim=48), make_vectors(600, dim=48, seed=1)
    vectors[7000:8000] = vectors[:1000]  # ties
    exclude = make_lists(600, 9000, total=6000)
    index = ExactIndex(vectors)
    whole = index.search(queries, 10, exclude=exclude)
    with threadpool_limits(threads):
        parts = [
            index.search(
                queries[start : start + batch],
                10,
                exclude=exclude.slice(start, min(start + batch, 600)),
            )
            for start in range(0, 600, batch)
        ]
    assert np.array_equal(np.concatenate([p.candidate_rows for p in parts]), whole.candidate_rows)
    assert np.array_equal(np.concatenate([p.scores for p in parts]), whole.scores)


def test_near_ties_are_ordered_by_the_exact_score() -> None:
    # Differences of 1e-7 in scores near 1 drown in float32 sums of 4096 terms, in any order.
    rng = np.random.default_rng(0)
    query = rng.standard_normal((1, 4096)).astype(np.float32)
    vectors = np.repeat(rng.standard_normal((1, 4096)).astype(np.float32), 3000, axis=0)
    vectors[np.arange(3000), rng.integers(0, 4096, 3000)] *= np.float32(1.0001)
    hits = ExactIndex(vectors).search(query, 20)
    assert lists_of(hits) == slow_search(query, vectors, 20, [set()], [set(range(3000))])


def test_lists_are_short_only_where_few_candidates_remain() -> None:
    index = ExactIndex(make_vectors(20))
    exclude = Ragged.from_pairs(np.repeat([0, 1], [18, 20]), np.r_[0:18, 0:20], 3)
    hits = index.search(make_vectors(3, seed=1), 10, exclude=exclude)
    assert hits.lengths.tolist() == [2, 0, 10]
    assert sorted(hits[0][0].tolist()) == [18, 19]
    everything = index.search(make_vectors(1, seed=1), 1000)
    assert sorted(everything.candidate_rows.tolist()) == list(range(20))
    assert np.isfinite(everything.scores).all()


def test_a_batch_of_no_queries_gives_no_hits() -> None:
    hits = ExactIndex(make_vectors(5)).search(np.zeros((0, 8), np.float32), 3)
    assert len(hits) == 0
    assert hits.offsets.tolist() == [0]


@pytest.mark.parametrize("num_interests", [1, 2])
def test_vectors_without_a_number_score_0_and_stand_in_the_order_of_rows(
    num_interests: int,
) -> None:
    # The sum over no products is 0, for each of 70 candidates: the first rows win.
    queries = np.zeros((3, num_interests, 0), np.float32)
    hits = ExactIndex(np.zeros((70, 0), np.float32)).search(queries, 2)
    assert lists_of(hits) == [[0, 1]] * 3
    assert hits.scores.tolist() == [0.0] * 6


def test_refuses_what_it_cannot_search() -> None:
    index = ExactIndex(make_vectors(5))
    query = make_vectors(1)
    with pytest.raises(ShapeError, match="`query_vectors` must have shape"):
        index.search(query[:, :3], 2)
    with pytest.raises(ArgumentError, match="`query_vectors` must be float32, got float64"):
        index.search(query.astype(np.float64), 2)
    with pytest.raises(ArgumentError, match="`k` must be at least 1, got 0"):
        index.search(query, 0)
    with pytest.raises(ArgumentError, match="`query_vectors` must be finite, row 0 is not"):
        index.search(query * np.float32(np.nan), 2)
    with pytest.raises(ArgumentError, match="`exclude` must hold 1 lists, got 2"):
        index.search(query, 2, exclude=Ragged.empty(2))
    with pytest.raises(ArgumentError, match="`exclude` must hold rows from 0, got -1"):
        index.search(query, 2, exclude=Ragged.from_pairs(np.array([0]), np.array([-1]), 1))
    with pytest.raises(ArgumentError, match="`allowed` must be one array of rising rows"):
        index.search(query, 2, allowed=np.array([3, 1]))
    with pytest.raises(ArgumentError, match="scores would leave float32"):
        ExactIndex(np.full((2, 2), 1e30, np.float32)).search(np.full((1, 2), 1e30, np.float32), 1)
    with pytest.raises(ArgumentError, match="`vectors` must be finite, row 1 is not"):
        ExactIndex(np.array([[0.0], [np.inf]], np.float32))
    with pytest.raises(ArgumentError, match="`vectors` must be float32, got float64"):
        ExactIndex(np.zeros((2, 2)))  # type: ignore[arg-type]
