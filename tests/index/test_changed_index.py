"""An index with changes: hidden, added and replaced rows, filters, batches, and what is refused."""

import numpy as np
import pytest
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, Ragged, ShapeError
from recsys.index import ChangedIndex, Changes, ExactIndex, FaissIndex, Hits, IndexSettings

NOTHING = np.zeros(0, np.int64)
KINDS = {
    "flat": IndexSettings(kind="flat"),
    "ivf_flat, all lists": IndexSettings(kind="ivf_flat", num_lists=6, num_probes=6),
    "hnsw": IndexSettings(kind="hnsw", m=16, ef_construction=100, ef_search=400),
}


def make_vectors(count: int, *, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, 4), dtype=np.float32)


def make_changed(
    rows: NDArray[np.int64],
    withdrawn: NDArray[np.int64],
    *,
    kind: str = "flat",
    count: int = 300,
) -> tuple[ChangedIndex, NDArray[np.float32]]:
    """Give an index with changes, and the vectors as they should be."""
    main, given = make_vectors(count), make_vectors(len(rows), seed=1)
    total = max(count, int(rows.max(initial=-1)) + 1)
    whole = np.concatenate([main, np.zeros((total - count, 4), np.float32)])
    whole[rows] = given
    changes = Changes(rows, given, withdrawn, total)
    return ChangedIndex(FaissIndex.build(main, KINDS[kind]), changes), whole


def assert_same(found: Hits, wanted: Hits) -> None:
    assert found.offsets.tolist() == wanted.offsets.tolist()
    assert found.candidate_rows.tolist() == wanted.candidate_rows.tolist()
    assert found.scores.tolist() == wanted.scores.tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("rows", "withdrawn"),
    [
        (NOTHING, NOTHING),
        (NOTHING, np.array([3])),
        (NOTHING, np.arange(20, 290)),  # so many that what is left is listed
        (np.arange(300, 310), NOTHING),
        (np.arange(5, 80), NOTHING),
        (np.array([0, 7, 300, 301]), np.array([1, 7, 301])),
        (np.arange(300), np.arange(0, 300, 7)),  # nothing of the main index is left
        (np.array([299, 300]), np.arange(299)),
    ],
)
def test_gives_what_an_exact_index_of_the_live_rows_gives(
    kind: str, rows: NDArray[np.int64], withdrawn: NDArray[np.int64]
) -> None:
    index, whole = make_changed(rows, withdrawn, kind=kind)
    live = np.setdiff1d(np.arange(len(whole)), withdrawn)
    exclude = Ragged.from_pairs(np.arange(90) % 9, np.arange(90) * 3, 9)
    for queries in (make_vectors(9, seed=2), make_vectors(27, seed=2).reshape(9, 3, 4)):
        for k in (1, 10, len(live), 2**62):
            for lists in (None, exclude):
                wanted = ExactIndex(whole).search(queries, k, exclude=lists, allowed=live)
                assert_same(index.search(queries, k, exclude=lists), wanted)
                assert_same(index.exact.search(queries, k, exclude=lists), wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_gives_nothing_where_everything_is_withdrawn(kind: str) -> None:
    index, _ = make_changed(np.array([4, 300]), np.arange(301), kind=kind)
    for allowed in (None, np.arange(0, 400, 2), Ragged(np.array([0, 2, 3]), np.array([4, 5, 6]))):
        for some in (index, index.exact):
            hits = some.search(make_vectors(2, seed=2), 3, allowed=allowed)
            assert hits.offsets.tolist() == [0, 0, 0]


def test_offers_what_an_index_without_changes_offers() -> None:
    index, whole = make_changed(np.array([7, 300, 301]), np.array([2]))
    assert (index.num_candidates, index.dim, index.kind) == (302, 4, "flat")
    assert (index.exact.num_candidates, index.exact.dim) == (302, 4)
    assert index.settings == KINDS["flat"]
    assert np.array_equal(index.vectors[[2, 7, 301]], whole[[2, 7, 301]])
    assert index.exact.vectors is index.vectors
    assert np.array_equal(index.main.vectors, make_vectors(300))


def test_equal_scores_are_ordered_by_row_wherever_they_stand() -> None:
    main = FaissIndex.build(np.ones((6, 4), np.float32), KINDS["flat"])
    rows = np.array([1, 4, 6])
    changes = Changes(rows, np.ones((3, 4), np.float32), np.array([2]), 7)
    for index in (ChangedIndex(main, changes), ChangedIndex(main, changes).exact):
        for k, wanted in ((2, [0, 1]), (3, [0, 1, 3]), (9, [0, 1, 3, 4, 5, 6])):
            hits = index.search(np.ones((1, 4), np.float32), k)
            assert hits.candidate_rows.tolist() == wanted


@pytest.mark.parametrize("better", [1.0, 30.0])
def test_neither_batches_nor_the_number_of_good_changes_alter_the_hits(better: float) -> None:
    # 30 times as long, nearly all changed rows beat the main index's: more than are looked at.
    main, given = make_vectors(3000), better * make_vectors(9000, seed=1)
    whole = np.concatenate([main[:2000], given])
    changes = Changes(np.arange(2000, 11_000), given, np.arange(0, 11_000, 50), 11_000)
    index = ChangedIndex(FaissIndex.build(main, KINDS["flat"]), changes)
    live = np.setdiff1d(np.arange(11_000), changes.withdrawn)
    queries, exclude = (
        make_vectors(300, seed=2),
        Ragged.from_pairs(np.arange(3000) % 300, np.arange(3000) * 3, 300),
    )
    wide = np.arange(0, 11_000, 2)
    for allowed in (None, wide):
        left = live if allowed is None else np.intersect1d(live, wide)
        wanted = ExactIndex(whole).search(queries, 10, exclude=exclude, allowed=left)
        assert_same(index.search(queries, 10, exclude=exclude, allowed=allowed), wanted)
        for query in (0, 137, 299):
            one = exclude.slice(query, query + 1)
            hits = index.search(queries[query : query + 1], 10, exclude=one, allowed=allowed)
            assert hits.candidate_rows.tolist() == wanted[query][0].tolist()
            assert hits.scores.tolist() == wanted[query][1].tolist()


@pytest.mark.parametrize("kind", ["hnsw", "hnsw_sq8"])
def test_a_graph_whose_best_rows_are_withdrawn_finds_the_next_ones(kind: str) -> None:
    # A graph that skips them in its walk stops among them: it finds none of the next 50.
    vectors = np.random.default_rng(0).standard_normal((3000, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    settings = IndexSettings(kind=kind, m=16, ef_construction=80, ef_search=60)
    main, queries = FaissIndex.build(vectors, settings), vectors[:3] + 0.1 * vectors[3:6]
    best = np.unique(main.exact.search(queries, 400).candidate_rows)
    changes = Changes(NOTHING, np.zeros((0, 8), np.float32), best, 3000)
    index = ChangedIndex(main, changes)
    hits, wanted = index.search(queries, 50), index.exact.search(queries, 50)
    assert not np.isin(hits.candidate_rows, best).any()
    for query in range(3):
        assert len(np.intersect1d(hits[query][0], wanted[query][0])) >= 45
    assert index.search(queries, 2400).lengths.tolist() == [min(2400, 3000 - len(best))] * 3


def test_refuses_changes_of_another_index() -> None:
    main = FaissIndex.build(make_vectors(10), KINDS["flat"])
    narrow = Changes(np.array([1]), np.zeros((1, 3), np.float32), NOTHING, 10)
    with pytest.raises(ShapeError, match=r"`vectors` must have shape \[1, 4\], got \[1, 3\]"):
        ChangedIndex(main, narrow)
    with pytest.raises(ArgumentError, match="`num_candidates` must be at least the 10 of the main"):
        ChangedIndex(main, Changes.none(9, 4))
    gap = Changes(np.array([1, 11]), np.zeros((2, 4), np.float32), NOTHING, 12)
    with pytest.raises(ArgumentError, match=r"every row from 10 to 11, which .* holds 1 of them"):
        ChangedIndex(main, gap)


def test_refuses_what_every_index_refuses() -> None:
    index, _ = make_changed(np.array([5, 300]), np.array([2]))
    query = make_vectors(1)
    for some in (index, index.exact):
        with pytest.raises(ArgumentError, match="`k` must be at least 1"):
            some.search(query, 0)
        with pytest.raises(ShapeError, match="`query_vectors` must have shape"):
            some.search(query[:, :3], 1)
        with pytest.raises(ArgumentError, match="`exclude` must hold 1 lists, got 2"):
            some.search(query, 1, exclude=Ragged.empty(2))
        with pytest.raises(ArgumentError, match="`allowed` must hold rows from 0, got -1"):
            some.search(query, 1, allowed=Ragged(np.array([0, 1]), np.array([-1])))
        with pytest.raises(ArgumentError, match="`allowed` must be one array of rising rows"):
            some.search(query, 1, allowed=np.array([3, 3]))
