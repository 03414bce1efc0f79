"""FAISS indexes against exact search: the same scores, filters honoured, lists full."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import faiss
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from recsys.foundations import ArgumentError, Ragged, held_threads, set_threads
from recsys.index import ExactIndex, FaissIndex, IndexSettings

SETTINGS = {
    "flat": IndexSettings(kind="flat"),
    "hnsw": IndexSettings(kind="hnsw", m=8, ef_construction=40, ef_search=64),
    "ivf_flat": IndexSettings(kind="ivf_flat", num_lists=20, num_probes=8),
    "ivf_pq": IndexSettings(kind="ivf_pq", num_lists=8, num_codes=8, code_bits=4),
    "hnsw_sq8": IndexSettings(kind="hnsw_sq8", m=8, ef_construction=40, ef_search=64),
    "ivf_sq8": IndexSettings(kind="ivf_sq8", num_lists=20, num_probes=8),
    "ivf_fp16": IndexSettings(kind="ivf_fp16", num_lists=20, num_probes=8),
    "ivf_pq_fast": IndexSettings(kind="ivf_pq_fast", num_lists=8, num_codes=8),
    "factory": IndexSettings(kind="factory", factory="IVF16,Flat"),
}


def make_vectors(count: int, *, dim: int = 16, seed: int = 0) -> NDArray[np.float32]:
    """Points around 40 centres, as embeddings are: neighbours exist."""
    centres = np.random.default_rng(7).standard_normal((40, dim))
    rng = np.random.default_rng(seed)
    points = centres[rng.integers(0, 40, count)] + 0.3 * rng.standard_normal((count, dim))
    return points.astype(np.float32)


@pytest.fixture(scope="module")
def indexes() -> dict[str, FaissIndex]:
    vectors = make_vectors(3000)
    return {name: FaissIndex.build(vectors, chosen) for name, chosen in SETTINGS.items()}


def test_a_flat_index_gives_what_exact_search_gives(indexes: dict[str, FaissIndex]) -> None:
    queries = make_vectors(80, seed=1)
    exclude = Ragged.from_pairs(np.arange(4000) % 80, np.arange(4000) % 3000, 80)
    for k in (1, 10, 2990):
        truth = indexes["flat"].exact.search(queries, k, exclude=exclude)
        for batch in (5, 80):  # few queries go through FAISS
            parts = [
                indexes["flat"].search(
                    queries[start : start + batch], k, exclude=exclude.slice(start, start + batch)
                )
                for start in range(0, 80, batch)
            ]
            rows = np.concatenate([part.candidate_rows for part in parts])
            assert (
                np.concatenate([part.lengths for part in parts]).tolist() == truth.lengths.tolist()
            )
            assert np.array_equal(rows, truth.candidate_rows)
            assert np.array_equal(np.concatenate([part.scores for part in parts]), truth.scores)


def test_a_flat_index_orders_ties_by_row() -> None:
    index = FaissIndex.build(np.ones((500, 4), np.float32), SETTINGS["flat"])
    exclude = Ragged(np.array([0, 2]), np.array([1, 3]))
    hits = index.search(np.ones((1, 4), np.float32), 4, exclude=exclude)
    assert hits.candidate_rows.tolist() == [0, 2, 4, 5]


@pytest.mark.parametrize("name", SETTINGS)
def test_most_of_the_true_best_are_found_with_their_true_scores(
    name: str, indexes: dict[str, FaissIndex]
) -> None:
    queries = make_vectors(100, seed=1)
    found, truth = indexes[name].search(queries, 10), indexes[name].exact.search(queries, 10)
    shared = sum(
        len(np.intersect1d(mine[0], true[0])) for mine, true in zip(found, truth, strict=True)
    )
    assert shared / 1000 > 0.8
    scores = (queries.astype(np.float64) @ make_vectors(3000).T).astype(np.float32)
    owners = np.repeat(np.arange(100), found.lengths)
    np.testing.assert_array_max_ulp(found.scores, scores[owners, found.candidate_rows], 1)


@pytest.mark.parametrize("name", SETTINGS)
def test_filters_are_honoured_and_lists_are_full(name: str, indexes: dict[str, FaissIndex]) -> None:
    queries, rng = make_vectors(30, seed=1), np.random.default_rng(0)
    best = indexes[name].exact.search(queries, 300).lists  # the worst case: the best are excluded
    wide, narrow = np.arange(0, 3000, 2), np.arange(0, 3000, 100)
    own = Ragged.from_pairs(rng.integers(0, 30, 900), rng.integers(0, 3000, 900), 30)
    for allowed in (None, wide, narrow, own):
        hits = indexes[name].search(queries, 10, exclude=best, allowed=allowed)
        for query, (rows, scores) in enumerate(hits):
            own_rows = allowed[query] if isinstance(allowed, Ragged) else allowed
            left = np.setdiff1d(np.arange(3000) if own_rows is None else own_rows, best[query])
            assert len(rows) == min(10, len(left))
            assert np.isin(rows, left).all()
            assert len(np.unique(rows)) == len(rows)
            order = np.lexsort((rows, -scores))
            assert order.tolist() == list(range(len(rows)))


@pytest.mark.parametrize("k", [5000, 2**62])
@pytest.mark.parametrize("name", SETTINGS)
def test_k_beyond_the_catalogue_gives_every_candidate_once(
    name: str, k: int, indexes: dict[str, FaissIndex]
) -> None:
    hits = indexes[name].search(make_vectors(2, seed=1), k, exclude=Ragged.empty(2))
    assert hits.lengths.tolist() == [3000, 3000]
    assert np.array_equal(np.sort(hits[1][0]), np.arange(3000))


@pytest.mark.parametrize("name", SETTINGS)
def test_does_not_depend_on_batches_or_threads(name: str, indexes: dict[str, FaissIndex]) -> None:
    queries, index = make_vectors(530, seed=1), indexes[name]
    exclude = Ragged.from_pairs(np.arange(4000) % 530 // 2, np.arange(4000) % 3000, 530)
    whole = index.search(queries, 10, exclude=exclude)
    for batch, threads in ((1, 1), (7, 2), (512, 2)):
        with threadpool_limits(threads):
            parts = [
                index.search(
                    queries[start : start + batch],
                    10,
                    exclude=exclude.slice(start, min(start + batch, 530)),
                )
                for start in range(0, 530, batch)
            ]
        rows = np.concatenate([part.candidate_rows for part in parts])
        assert np.array_equal(rows, whole.candidate_rows)
        assert np.array_equal(np.concatenate([part.scores for part in parts]), whole.scores)


@pytest.mark.parametrize("name", SETTINGS)
def test_many_queries_are_searched_side_by_side_with_the_same_hits(
    name: str, indexes: dict[str, FaissIndex]
) -> None:
    queries, index = make_vectors(700, seed=1), indexes[name]
    # Few exclude much, most a little or nothing: their fetches differ.
    own = np.minimum(np.random.default_rng(0).geometric(0.01, 9000), 699)
    exclude = Ragged.from_pairs(own, np.arange(9000) % 3000, 700)
    cases: list[dict[str, Any]] = [
        {},
        {"exclude": exclude},
        {"exclude": exclude, "allowed": np.arange(1, 3000)},
    ]
    for options in cases:
        with held_threads(1):
            alone = index.search(queries, 10, **options)
        with held_threads(3):
            together = index.search(queries, 10, **options)
        assert together.offsets.tobytes() == alone.offsets.tobytes()
        assert together.candidate_rows.tobytes() == alone.candidate_rows.tobytes()
        assert together.scores.tobytes() == alone.scores.tobytes()


def test_the_bound_of_threads_holds_in_every_thread_that_searches(
    indexes: dict[str, FaissIndex],
) -> None:
    before = torch.get_num_threads()
    set_threads(3)
    try:
        with ThreadPoolExecutor(1) as executor:
            executor.submit(indexes["flat"].search, make_vectors(1, seed=1), 10).result()
            assert executor.submit(faiss.omp_get_max_threads).result() == 3
    finally:
        set_threads(before)


def test_the_same_vectors_give_the_same_graph() -> None:
    vectors = make_vectors(2000)
    first, second = (FaissIndex.build(vectors, SETTINGS["hnsw"]) for _ in range(2))
    queries = make_vectors(200, seed=3)
    assert np.array_equal(
        first.search(queries, 20).candidate_rows, second.search(queries, 20).candidate_rows
    )


def test_more_probes_than_one_are_read_unless_one_is_asked_for() -> None:
    index = FaissIndex.build(make_vectors(3000), IndexSettings(kind="ivf_flat"))
    assert index.inner.nprobe >= 8
    one = IndexSettings(kind="ivf_flat", num_lists=16, num_probes=1)
    assert FaissIndex.build(make_vectors(3000), one).inner.nprobe == 1


def test_refuses_vectors_that_cannot_be_searched() -> None:
    with pytest.raises(ArgumentError, match="at least one vector"):
        FaissIndex.build(np.zeros((0, 4), np.float32), SETTINGS["flat"])
    with pytest.raises(ArgumentError, match="must be finite, row 2"):
        FaissIndex.build(np.array([[0.0], [1.0], [np.nan]], np.float32), SETTINGS["flat"])


def test_refuses_an_index_of_other_vectors() -> None:
    inner = FaissIndex.build(make_vectors(50), SETTINGS["flat"]).inner
    with pytest.raises(ArgumentError, match="must hold 49 vectors of width 16"):
        FaissIndex(make_vectors(49), inner, SETTINGS["flat"])


def test_exact_and_faiss_agree_on_a_single_candidate() -> None:
    vector = make_vectors(1)
    for index in (ExactIndex(vector), FaissIndex.build(vector, IndexSettings())):
        assert index.search(vector, 7).candidate_rows.tolist() == [0]


@pytest.mark.parametrize("name", SETTINGS)
def test_queries_so_long_that_scores_leave_float32_are_refused_as_exact_search_does(
    indexes: dict[str, FaissIndex], name: str
) -> None:
    queries = make_vectors(3, seed=1)
    queries[1] = 3e38
    for part in (queries, queries[1:2], queries[None]):  # the last: interests of one query
        for index in (indexes[name], indexes[name].exact):
            with pytest.raises(ArgumentError, match="so long that scores would leave float32"):
                index.search(part, 5)


@pytest.mark.parametrize("name", SETTINGS)
def test_long_queries_with_scores_within_float32_are_searched(
    indexes: dict[str, FaissIndex], name: str
) -> None:
    queries = make_vectors(3, seed=1)
    long = queries * np.float32(2.0**100)  # squares leave float32, scores do not
    found, usual = indexes[name].search(long, 5), indexes[name].search(queries, 5)
    assert np.array_equal(found.candidate_rows, usual.candidate_rows)
    assert np.array_equal(found.scores, usual.scores * np.float32(2.0**100))
