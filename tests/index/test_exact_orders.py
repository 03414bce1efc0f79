"""Exact search where floors help little: orders, ties and lengths that a block does not expect."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from recsys.foundations import ArgumentError, Ragged
from recsys.index import ExactIndex, Hits, scored_blocks

C, B, D = 21_000, 40, 16


def make_normal(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def make_line(levels: NDArray[np.floating]) -> NDArray[np.float32]:
    """Candidates along one direction: every query orders them alike, or the other way round."""
    return (levels[:, None] * make_normal(1, D, seed=3)).astype(np.float32)


CASES: dict[str, Callable[[], NDArray[np.float32]]] = {
    "rising": lambda: make_line(np.linspace(0.1, 1, C)),
    "falling": lambda: make_line(np.linspace(1, 0.1, C)),
    "rising in steps of a thousand": lambda: make_line(np.arange(C) // 1000 / 20 + 0.1),
    "all equal": lambda: np.repeat(make_normal(1, D), C, axis=0),
    "all zero": lambda: np.zeros((C, D), np.float32),
    "twenty different": lambda: make_normal(20, D)[np.arange(C) % 20],
    "two halves the same": lambda: np.tile(make_normal(C // 2, D), (2, 1)),
    "one a million times longer": lambda: _with_row(make_normal(C, D), C // 2, 1e6),
    "the last a million times longer": lambda: _with_row(make_normal(C, D), C - 1, 1e6),
    "all but one a million times shorter": lambda: _with_row(make_normal(C, D) * 1e-6, 5, 1e6),
    "lengths over ten decades": lambda: _with_lengths(make_normal(C, D)),
    "apart by single roundings": lambda: _nearly_equal(),
}


def _with_row(vectors: NDArray[np.float32], row: int, factor: float) -> NDArray[np.float32]:
    vectors[row] *= np.float32(factor)
    return vectors


def _with_lengths(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.exp(np.random.default_rng(1).uniform(-12, 12, (C, 1)))
    return (vectors * lengths).astype(np.float32)


def _nearly_equal() -> NDArray[np.float32]:
    vectors = np.repeat(make_normal(1, D), C, axis=0)
    rng = np.random.default_rng(2)
    places = rng.integers(0, D, C)
    vectors[np.arange(C), places] = np.nextafter(vectors[0, places], np.float32(9))
    return vectors


def make_queries(count: int = B) -> NDArray[np.float32]:
    queries = make_normal(count, D, seed=1)
    queries[3] = 0  # every score is 0
    queries[4] *= np.float32(1e-20)
    return queries


def slow_search(
    queries: NDArray[np.float32], vectors: NDArray[np.float32], k: int, exclude: Ragged
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Rank by float64 sums over D, rounded to float32; equal ones by row: [B * k] each."""
    products = queries.astype(np.float64)[:, None, :] * vectors.astype(np.float64)[None]
    scores = products.sum(axis=2).astype(np.float32)
    scores[exclude.owners(), exclude.rows] = -np.inf
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order.ravel(), np.take_along_axis(scores, order, axis=1).ravel()


def assert_same(found: Hits, rows: NDArray[np.int64], scores: NDArray[np.float32]) -> None:
    assert np.array_equal(found.candidate_rows, rows)
    assert np.array_equal(found.scores, scores)


@pytest.mark.parametrize("k", [1, 100, 1500])
@pytest.mark.parametrize("case", CASES)
def test_equals_the_slow_ranking_whatever_the_candidates(case: str, k: int) -> None:
    vectors, queries = CASES[case](), make_queries()
    rng = np.random.default_rng(5)
    exclude = Ragged.from_pairs(rng.integers(0, B, 900), rng.integers(0, C, 900), B)
    expected = slow_search(queries, vectors, k, exclude)
    assert_same(ExactIndex(vectors).search(queries, k, exclude=exclude), *expected)


@pytest.mark.parametrize("case", CASES)
def test_several_interests_give_the_best_of_each_candidate(case: str) -> None:
    vectors, queries = CASES[case](), make_queries(3 * B).reshape(B, 3, D)
    products = queries.astype(np.float64)[:, :, None, :] * vectors.astype(np.float64)[None, None]
    scores = products.sum(axis=3).max(axis=1).astype(np.float32)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :50]
    hits = ExactIndex(vectors).search(queries, 50)
    assert_same(hits, order.ravel(), np.take_along_axis(scores, order, axis=1).ravel())


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    k=st.integers(1, 300),
    scores_at_once=st.sampled_from([1, 1 << 10, 1 << 14, 1 << 21]),
    first=st.sampled_from([16, 1000, 4096]),
    fewest=st.sampled_from([16, 300, 1024]),
    levels=st.sampled_from([2, 5, 1000]),
)
def test_does_not_depend_on_the_sizes_of_blocks(
    seed: int, k: int, scores_at_once: int, first: int, fewest: int, levels: int
) -> None:
    rng = np.random.default_rng(seed)
    vectors = (rng.integers(0, levels, (3000, 5)) / 7).astype(np.float32)
    queries = (rng.integers(-3, 4, (13, 5)) / 3).astype(np.float32)
    allowed = np.flatnonzero(rng.random(3000) < 0.8)
    index = ExactIndex(vectors)
    expected = index.search(queries, k), index.search(queries, k, allowed=allowed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scored_blocks, "_SCORES_AT_ONCE", scores_at_once)
        patch.setattr(scored_blocks, "_FIRST", first)
        patch.setattr(scored_blocks, "_FEWEST", fewest)
        found = index.search(queries, k), index.search(queries, k, allowed=allowed)
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other.candidate_rows, other.scores)


@pytest.mark.parametrize("case", ["rising", "twenty different", "apart by single roundings"])
def test_batches_and_threads_change_no_byte(case: str) -> None:
    vectors, queries = CASES[case](), make_queries(600)
    index = ExactIndex(vectors)
    with threadpool_limits(1):
        whole = index.search(queries, 20)
    for batch, threads in ((1, 2), (7, 1), (7, 2), (512, 2), (600, 2)):
        number = 20 if batch < 10 else 600
        with threadpool_limits(threads):
            parts = [
                index.search(queries[start : start + batch], 20)
                for start in range(0, number, batch)
            ]
        rows = np.concatenate([part.candidate_rows for part in parts])
        scores = np.concatenate([part.scores for part in parts])
        assert rows.tobytes() == whole.candidate_rows[: len(rows)].tobytes()
        assert scores.tobytes() == whole.scores[: len(scores)].tobytes()


def test_vectors_that_are_longer_than_float32_are_refused() -> None:
    with pytest.raises(ArgumentError, match="`vectors` must have lengths within float32"):
        ExactIndex(np.full((2, 4), 3e38, np.float32))
