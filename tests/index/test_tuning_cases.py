"""The tuned index on vectors that defeat clustering and codes: it must still be right."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from recsys.index import ExactIndex, FaissIndex, IndexSettings, Tuning, TuningTarget, tune_index

COUNT = 21_000  # above the default of index.exact_below
Vectors = NDArray[np.float32]


def normal(count: int, dim: int, seed: int = 0) -> Vectors:
    return np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)


def all_equal() -> Vectors:
    return np.tile(normal(1, 8), (COUNT, 1))


def half_equal() -> Vectors:
    vectors = normal(COUNT, 8)
    vectors[::2] = vectors[0]
    return vectors


def all_zero() -> Vectors:
    return np.zeros((COUNT, 8), np.float32)


def half_zero() -> Vectors:
    vectors = normal(COUNT, 8)
    vectors[::2] = 0
    return vectors


def one_huge() -> Vectors:
    vectors = normal(COUNT, 8)
    vectors[77] *= 1e6
    return vectors


def tune(vectors: Vectors, queries: Vectors) -> tuple[FaissIndex, Tuning]:
    target = TuningTarget(
        target_recall=0.95,
        target_k=10,
        memory_gb=None,
        queries_at_once=16,
        exact_below=20_000,
        num_queries=60,
        build_minutes=1e-9,  # no graph: it is the lists that such vectors defeat
    )
    return tune_index(vectors, queries, IndexSettings(m=4), target, seed=0)


def check_right(index: FaissIndex, vectors: Vectors, queries: Vectors) -> None:
    """Compare scores with brute force in float64: equal vectors may stand for one another."""
    hits = index.search(queries, 10)
    assert hits.lengths.tolist() == [10] * len(queries)
    scores = queries.astype(np.float64) @ vectors.T.astype(np.float64)
    tenth = -np.sort(-scores, axis=1)[:, 9:10]
    for rows, _ in hits:
        assert len(set(rows.tolist())) == 10
    got = np.stack([scores[place, rows] for place, (rows, _) in enumerate(hits)])
    scale = np.abs(scores).max(axis=1, keepdims=True)
    found = got >= tenth - 1e-5 * scale
    assert found.mean() >= 0.9  # the target, within the spread of 40 queries


@pytest.mark.parametrize("make", [all_equal, half_equal, all_zero, half_zero, one_huge])
def test_vectors_that_defeat_clustering_end_with_a_right_index(make: Callable[[], Vectors]) -> None:
    vectors = make()
    index, tuning = tune(vectors, normal(60, 8, seed=1))
    assert tuning.chosen is not None
    check_right(index, vectors, normal(40, 8, seed=2))


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_few_dimensions_end_with_a_right_index(dim: int) -> None:
    vectors = normal(COUNT, dim)
    index, tuning = tune(vectors, normal(60, dim, seed=1))
    assert tuning.chosen is not None
    check_right(index, vectors, normal(40, dim, seed=2))


def test_scores_of_the_tuned_index_are_those_of_exact_search() -> None:
    vectors = half_equal()
    index, _ = tune(vectors, normal(60, 8, seed=1))
    queries = normal(20, 8, seed=2)
    exact = ExactIndex(vectors).search(queries, COUNT)
    for query, (rows, scores) in enumerate(index.search(queries, 10)):
        known = dict(zip(*(part.tolist() for part in exact[query]), strict=True))
        assert [known[row] for row in rows.tolist()] == scores.tolist()
