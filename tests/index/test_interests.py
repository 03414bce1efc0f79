"""Queries of several interests: every index against a slow loop over interests and candidates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from recsys.foundations import ArgumentError, Ragged, ShapeError
from recsys.index import ExactIndex, FaissIndex, Hits, Index, IndexSettings

SETTINGS = {
    "flat": IndexSettings(kind="flat"),
    "hnsw": IndexSettings(kind="hnsw", m=8, ef_construction=40, ef_search=64),
    "ivf_flat": IndexSettings(kind="ivf_flat", num_lists=20, num_probes=8),
    "ivf_pq": IndexSettings(kind="ivf_pq", num_lists=8, num_codes=8, code_bits=4),
}
KINDS = ["exact", *SETTINGS]


def make_vectors(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    """Points around 40 centres, as embeddings are: neighbours exist."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(7).standard_normal((40, shape[-1]))
    points = centres[rng.integers(0, 40, shape[:-1])] + 0.3 * rng.standard_normal(shape)
    return points.astype(np.float32)


def make_lists(num_lists: int, num_rows: int, *, total: int, seed: int = 0) -> Ragged:
    rng = np.random.default_rng(seed)
    owners, rows = rng.integers(0, num_lists, total), rng.integers(0, num_rows, total)
    return Ragged.from_pairs(owners, rows, num_lists)


def make_index(kind: str, vectors: NDArray[np.float32]) -> Index:
    return ExactIndex(vectors) if kind == "exact" else FaissIndex.build(vectors, SETTINGS[kind])


@pytest.fixture(scope="module")
def indexes() -> dict[str, Index]:
    return {kind: make_index(kind, make_vectors(3000, 16)) for kind in KINDS}


def slow_scores(query: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Score every candidate for the M interests [M, D] of one query, one by one: [C]."""
    best = np.full(len(vectors), -np.inf)
    for interest in query.astype(np.float64):
        for row, vector in enumerate(vectors.astype(np.float64)):
            best[row] = max(best[row], float(interest @ vector))
    return best.astype(np.float32)


def slow_search(
    queries: NDArray[np.float32],
    vectors: NDArray[np.float32],
    k: int,
    exclude: list[set[int]],
    allowed: list[set[int]],
) -> list[list[int]]:
    lists = []
    for query, out, may in zip(queries, exclude, allowed, strict=True):
        line = slow_scores(query, vectors)
        lists.append(sorted(may - out, key=lambda row, line=line: (-line[row], row))[:k])  # type: ignore[misc]
    return lists


def lists_of(hits: Hits) -> list[list[int]]:
    return [rows.tolist() for rows, _ in hits]


def assert_equal(found: Hits, expected: Hits) -> None:
    assert np.array_equal(found.offsets, expected.offsets)
    assert np.array_equal(found.candidate_rows, expected.candidate_rows)
    assert np.array_equal(found.scores, expected.scores)


@pytest.mark.parametrize("kind", ["exact", "flat"])
def test_an_item_has_the_score_of_the_interest_that_likes_it_most(kind: str) -> None:
    vectors = np.array([[1, 0], [0, 2], [3, 0], [1, 0], [-1, -1]], np.float32)
    # Interests (1, 0) and (0, 1): scores 1, 2, 3, 1 and max(-1, -1) = -1; the tie goes by row.
    query = np.array([[[1, 0], [0, 1]]], np.float32)
    hits = make_index(kind, vectors).search(query, 4)
    assert hits.candidate_rows.tolist() == [2, 1, 0, 3]
    assert hits.scores.tolist() == [3.0, 2.0, 1.0, 1.0]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    num_interests=st.integers(1, 4),
    k=st.integers(1, 30),
    count=st.integers(1, 60),
    levels=st.sampled_from([2, 3, 1000]),
    filtering=st.sampled_from(["all", "shared", "own"]),
    kind=st.sampled_from(["exact", "flat"]),
)
def test_equals_the_slow_ranking(
    seed: int, num_interests: int, k: int, count: int, levels: int, filtering: str, kind: str
) -> None:
    rng = np.random.default_rng(seed)
    vectors = (rng.integers(0, levels, (count, 3)) / 7).astype(np.float32)  # few levels: many ties
    queries = (rng.integers(-2, 3, (5, num_interests, 3)) / 3).astype(np.float32)
    exclude = make_lists(5, count + 3, total=count, seed=seed)
    own = make_lists(5, count + 3, total=2 * count, seed=seed + 1)
    shared = np.unique(rng.integers(0, count + 3, count // 2))
    allowed = {"all": None, "shared": shared, "own": own}[filtering]
    may = {
        "all": [set(range(count))] * 5,
        "shared": [set(shared.tolist()) & set(range(count))] * 5,
        "own": [set(own[i].tolist()) & set(range(count)) for i in range(5)],
    }[filtering]
    hits = make_index(kind, vectors).search(queries, k, exclude=exclude, allowed=allowed)
    out = [set(exclude[i].tolist()) for i in range(5)]
    assert lists_of(hits) == slow_search(queries, vectors, k, out, may)


@pytest.mark.parametrize("kind", KINDS)
def test_one_interest_is_a_plain_query(kind: str, indexes: dict[str, Index]) -> None:
    queries = make_vectors(40, 16, seed=1)
    exclude = make_lists(40, 3000, total=2000)
    assert_equal(
        indexes[kind].search(queries[:, None], 10, exclude=exclude),
        indexes[kind].search(queries, 10, exclude=exclude),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_interests_that_find_the_same_items_give_each_once(
    kind: str, indexes: dict[str, Index]
) -> None:
    # Of one interest said three times every list is the same; of a shorter copy of it the order
    # is the same too, but its scores are lower, where they are above 0.
    queries = make_vectors(40, 16, seed=1)
    thrice = np.repeat(queries[:, None], 3, axis=1)
    thrice[:, 1] *= np.float32(0.5)
    exclude = make_lists(40, 3000, total=2000)
    found = indexes[kind].search(thrice, 10, exclude=exclude)
    assert_equal(found, indexes[kind].search(queries, 10, exclude=exclude))
    assert found.lengths.tolist() == [10] * 40


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf_flat"])
def test_faiss_finds_what_exact_search_finds_with_the_same_scores(
    kind: str, indexes: dict[str, Index]
) -> None:
    queries = make_vectors(60, 4, 16, seed=1)
    found, truth = (indexes[name].search(queries, 10) for name in (kind, "exact"))
    if kind == "flat":
        assert_equal(found, truth)
    shared = sum(
        len(np.intersect1d(mine[0], true[0])) for mine, true in zip(found, truth, strict=True)
    )
    assert shared / 600 > 0.9
    # An item that one interest finds has the score of the interest that likes it most.
    scores = (queries.astype(np.float64) @ make_vectors(3000, 16).T).max(axis=1)
    owners = np.repeat(np.arange(60), found.lengths)
    expected = scores[owners, found.candidate_rows].astype(np.float32)
    np.testing.assert_array_max_ulp(found.scores, expected, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_filters_are_honoured_and_lists_are_full(kind: str, indexes: dict[str, Index]) -> None:
    queries = make_vectors(20, 3, 16, seed=1)
    best = indexes["exact"].search(queries, 300).lists  # the worst case: the best are excluded
    own = make_lists(20, 3000, total=600)
    for allowed in (None, np.arange(0, 3000, 2), np.arange(0, 3000, 100), own):
        hits = indexes[kind].search(queries, 10, exclude=best, allowed=allowed)
        for query, (rows, scores) in enumerate(hits):
            own_rows = allowed[query] if isinstance(allowed, Ragged) else allowed
            left = np.setdiff1d(np.arange(3000) if own_rows is None else own_rows, best[query])
            assert len(rows) == min(10, len(left))
            assert np.isin(rows, left).all()
            assert len(np.unique(rows)) == len(rows)
            assert np.lexsort((rows, -scores)).tolist() == list(range(len(rows)))


@pytest.mark.parametrize("kind", KINDS)
def test_k_beyond_the_catalogue_gives_every_candidate_once(
    kind: str, indexes: dict[str, Index]
) -> None:
    hits = indexes[kind].search(make_vectors(2, 3, 16, seed=1), 5000)
    assert hits.lengths.tolist() == [3000, 3000]
    assert np.array_equal(np.sort(hits[1][0]), np.arange(3000))


@pytest.mark.parametrize("kind", KINDS)
def test_does_not_depend_on_batches_or_threads(kind: str, indexes: dict[str, Index]) -> None:
    queries, index = make_vectors(530, 3, 16, seed=1), indexes[kind]
    exclude = make_lists(530, 3000, total=4000)
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


@pytest.mark.parametrize("kind", ["exact", "flat"])
def test_refuses_what_it_cannot_search(kind: str, indexes: dict[str, Index]) -> None:
    index, queries = indexes[kind], make_vectors(2, 3, 16)
    with pytest.raises(ShapeError, match=r"must have shape \[any, any, 16\], got \[2, 3, 15\]"):
        index.search(queries[:, :, 1:], 2)
    with pytest.raises(ShapeError, match=r"at least one vector a query, got \[2, 0, 16\]"):
        index.search(queries[:, :0], 2)
    with pytest.raises(ShapeError, match=r"must have shape \[any, 16\], got \[1, 2, 3, 16\]"):
        index.search(queries[None], 2)
    queries[1, 2, 0] = np.nan
    with pytest.raises(ArgumentError, match="`query_vectors` must be finite, row 1 is not"):
        index.search(queries, 2)
    assert len(index.search(np.zeros((0, 3, 16), np.float32), 2)) == 0
