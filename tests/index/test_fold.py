"""Changes folded into the main index: what is kept, what is trained anew, the recall of both."""

from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, FormatError, ShapeError
from recsys.index import (
    ChangedIndex,
    Changes,
    FaissIndex,
    IndexSettings,
    MeasuredRecall,
    fold,
    measure_recall,
    needs_retraining,
    read_index,
    read_vectors,
    write_index,
    write_vectors,
)

NOTHING = np.zeros(0, np.int64)
LISTS = {
    "ivf_flat": IndexSettings(kind="ivf_flat", num_lists=20, num_probes=4),
    "ivf_sq8": IndexSettings(kind="ivf_sq8", num_lists=20, num_probes=4),
    "ivf_fp16": IndexSettings(kind="ivf_fp16", num_lists=20, num_probes=4),
    "ivf_pq": IndexSettings(kind="ivf_pq", num_lists=8, num_codes=8, code_bits=4),
    "ivf_pq_fast": IndexSettings(kind="ivf_pq_fast", num_lists=8, num_codes=8),
}
GRAPHS = {
    "hnsw": IndexSettings(kind="hnsw", m=8, ef_construction=40, ef_search=20),
    "hnsw_sq8": IndexSettings(kind="hnsw_sq8", m=8, ef_construction=40, ef_search=20),
}
ALL = {"flat": IndexSettings(kind="flat"), **LISTS, **GRAPHS}


def make_vectors(count: int, *, seed: int = 0, shift: float = 0.0) -> NDArray[np.float32]:
    """Points around 40 centres; a shift moves all of them."""
    centres = np.random.default_rng(7).standard_normal((40, 16))
    rng = np.random.default_rng(seed)
    points = centres[rng.integers(0, 40, count)] + 0.3 * rng.standard_normal((count, 16))
    return (points + shift).astype(np.float32)


def make_changed(settings: IndexSettings, *, replaced: int = 30, added: int = 50) -> ChangedIndex:
    rows = np.concatenate([np.arange(replaced) * 7, np.arange(900, 900 + added)])
    changes = Changes(rows, make_vectors(len(rows), seed=1), np.array([0, 1, 899]), 900 + added)
    return ChangedIndex(FaissIndex.build(make_vectors(900), settings), changes)


def inner_of(index: Any) -> Any:
    return index.inner


def centroids_of(index: Any) -> Any:
    return index.inner.quantizer.reconstruct_n(0, index.inner.nlist)


@pytest.mark.parametrize("retrain", [False, True])
@pytest.mark.parametrize("kind", ALL)
def test_holds_every_vector_and_finds_what_the_changed_index_finds(
    kind: str, retrain: bool
) -> None:
    changed = make_changed(ALL[kind])
    before, whole = inner_of(changed.main).ntotal, np.asarray(changed.vectors)
    folded = fold(changed, retrain=retrain)
    assert folded.kind == kind
    assert folded.settings == ALL[kind]
    assert np.array_equal(folded.vectors, whole)
    assert inner_of(changed.main).ntotal == before
    queries = make_vectors(200, seed=2)
    recall = measure_recall(folded, queries, 10, 0)
    assert recall.mean > measure_recall(changed, queries, 10, 0).mean - 0.02
    hits = folded.search(queries, 950)  # every vector, withdrawn or not, stands in it once
    assert (hits.lengths == 950).all()


@pytest.mark.parametrize("kind", LISTS)
def test_lists_keep_their_centroids_unless_trained_anew(kind: str) -> None:
    changed = make_changed(LISTS[kind])
    kept, anew = fold(changed, retrain=False), fold(changed, retrain=True)
    assert np.array_equal(centroids_of(kept), centroids_of(changed.main))
    assert not np.array_equal(centroids_of(anew), centroids_of(changed.main))


@pytest.mark.parametrize("kind", LISTS)
def test_the_changed_vectors_stand_in_the_lists_of_a_build_with_these_centroids(kind: str) -> None:
    changed = make_changed(LISTS[kind])
    kept = fold(changed, retrain=False)
    lists = inner_of(kept).invlists
    _, nearest = inner_of(kept).quantizer.search(kept.vectors, 1)
    for number in range(inner_of(kept).nlist):
        size = lists.list_size(number)
        ids = [lists.get_single_id(number, place) for place in range(size)]
        assert sorted(ids) == np.flatnonzero(nearest[:, 0] == number).tolist()


def test_the_number_of_lists_follows_the_catalogue_only_when_trained_anew() -> None:
    changed = make_changed(IndexSettings(kind="ivf_flat"), added=900)
    kept, anew = fold(changed, retrain=False), fold(changed, retrain=True)
    assert (inner_of(kept).nlist, inner_of(kept).nprobe) == (120, 15)  # 4 sqrt(900), an eighth
    assert (inner_of(anew).nlist, inner_of(anew).nprobe) == (170, 22)  # 4 sqrt(1800)


def test_a_graph_grows_by_what_is_added() -> None:
    changed = make_changed(GRAPHS["hnsw"], replaced=0)
    grown = fold(changed, retrain=False)
    before, after = (
        faiss.vector_to_array(inner_of(some).hnsw.levels).tolist() for some in (changed.main, grown)
    )
    assert after[:900] == before
    built = FaissIndex.build(np.asarray(changed.vectors), GRAPHS["hnsw"])
    queries = make_vectors(300, seed=2)
    recall, wanted = (measure_recall(some, queries, 10, 0).mean for some in (grown, built))
    assert wanted < 1
    assert recall == pytest.approx(wanted, abs=0.01)


def test_a_graph_in_which_vectors_were_replaced_is_that_of_a_build() -> None:
    changed = make_changed(GRAPHS["hnsw"])
    folded = fold(changed, retrain=False)
    built = FaissIndex.build(np.asarray(changed.vectors), GRAPHS["hnsw"])
    queries = make_vectors(200, seed=2)
    found, wanted = folded.search(queries, 10), built.search(queries, 10)
    assert found.candidate_rows.tolist() == wanted.candidate_rows.tolist()


def test_vectors_that_were_written_already_are_not_copied() -> None:
    changed = make_changed(ALL["flat"])
    vectors = np.asarray(changed.vectors)
    assert fold(changed, retrain=False, vectors=vectors).vectors is vectors
    with pytest.raises(ShapeError, match=r"`vectors` must have shape \[950, 16\]"):
        fold(changed, retrain=False, vectors=vectors[:-1])


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("replaced", [0, 30])
def test_an_index_that_was_read_folds_as_the_one_that_was_written(
    kind: str, replaced: int, tmp_path: Path
) -> None:
    changed = make_changed(ALL[kind], replaced=replaced)
    assert isinstance(changed.main, FaissIndex)
    write_index(tmp_path / "index.faiss", changed.main)
    write_vectors(tmp_path / "vectors.npy", changed.main.vectors)
    content = (tmp_path / "index.faiss").read_bytes()
    main = read_index(tmp_path / "index.faiss", read_vectors(tmp_path / "vectors.npy"), ALL[kind])
    queries = make_vectors(50, seed=2)
    found = fold(ChangedIndex(main, changed.changes), retrain=False).search(queries, 10)
    wanted = fold(changed, retrain=False).search(queries, 10)
    assert found.candidate_rows.tolist() == wanted.candidate_rows.tolist()
    assert (tmp_path / "index.faiss").read_bytes() == content


def test_few_vectors_that_are_flat_stay_so_until_trained_anew() -> None:
    settings = IndexSettings(kind="ivf_flat", num_lists=20)
    main = FaissIndex.build(make_vectors(10), settings)
    assert main.kind == "flat"
    changes = Changes(np.arange(10, 60), make_vectors(50, seed=1), NOTHING, 60)
    changed = ChangedIndex(main, changes)
    assert fold(changed, retrain=False).kind == "flat"
    assert fold(changed, retrain=True).kind == "ivf_flat"


def test_recall_is_measured_against_exact_search() -> None:
    changed = make_changed(IndexSettings(kind="ivf_flat", num_lists=20, num_probes=1))
    queries = make_vectors(50, seed=2)
    recall = measure_recall(changed, queries, 50, 0)
    found, truth = changed.search(queries, 50), changed.exact.search(queries, 50)
    shares = [len(np.intersect1d(a[0], b[0])) / 50 for a, b in zip(found, truth, strict=True)]
    assert recall.mean == pytest.approx(np.mean(shares))
    assert 0 < recall.low < recall.mean < recall.high < 1
    assert (recall.k, recall.num_queries) == (50, 50)
    assert MeasuredRecall.from_json(recall.to_json()) == recall


def test_nothing_is_lost_where_there_is_nothing() -> None:
    main = FaissIndex.build(make_vectors(3), ALL["flat"])
    changes = Changes(NOTHING, np.zeros((0, 16), np.float32), np.arange(3), 3)
    recall = measure_recall(ChangedIndex(main, changes), make_vectors(5, seed=2), 5, 0)
    assert recall == MeasuredRecall(mean=1.0, low=1.0, high=1.0, k=5, num_queries=0)
    with pytest.raises(ArgumentError, match="`queries` must hold at least one query"):
        measure_recall(main, make_vectors(0), 5, 0)


def test_vectors_that_moved_away_from_the_centroids_ask_for_training() -> None:
    settings = IndexSettings(kind="ivf_pq", num_lists=20, num_codes=8, code_bits=4, overfetch=2)
    main = FaissIndex.build(make_vectors(900), settings)
    queries = make_vectors(300, seed=2)
    trained = measure_recall(main, queries, 10, 0)
    alike = Changes(np.arange(900, 1000), make_vectors(100, seed=3), NOTHING, 1000)
    kept = fold(ChangedIndex(main, alike), retrain=False)
    assert not needs_retraining(trained, measure_recall(kept, queries, 10, 0), 0.05)
    away = Changes(np.arange(900), make_vectors(900, seed=3, shift=3.0), NOTHING, 900)
    changed = ChangedIndex(main, away)
    moved = measure_recall(fold(changed, retrain=False), queries, 10, 0)
    assert needs_retraining(trained, moved, 0.05)
    anew = measure_recall(fold(changed, retrain=True), queries, 10, 0)
    assert not needs_retraining(trained, anew, 0.05)


def test_a_loss_below_the_threshold_or_within_chance_asks_for_nothing() -> None:
    def recall(mean: float, high: float, k: int = 10) -> MeasuredRecall:
        return MeasuredRecall(mean=mean, low=mean - 0.01, high=high, k=k, num_queries=100)

    trained = recall(0.96, 0.97)
    assert needs_retraining(trained, recall(0.93, 0.94), 0.02)
    assert not needs_retraining(trained, recall(0.95, 0.955), 0.02)
    assert not needs_retraining(trained, recall(0.93, 0.96), 0.02)  # few queries, a wide interval
    assert not needs_retraining(trained, recall(0.99, 1.0), 0.0)
    with pytest.raises(ArgumentError, match="`now` must be measured at k = 10, got 20"):
        needs_retraining(trained, recall(0.9, 0.91, k=20), 0.02)
    with pytest.raises(ArgumentError, match="`threshold` must be from 0 to 1, got 2"):
        needs_retraining(trained, trained, 2.0)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "not the keys it should have"),
        ({"mean": 1.0}, "not the keys it should have"),
        ({"mean": "1", "low": 1.0, "high": 1.0, "k": 5, "num_queries": 3}, "mean is '1'"),
        ({"mean": 1.0, "low": 1.0, "high": 1.0, "k": 5.5, "num_queries": 3}, "k is 5.5"),
        ({"mean": 1.0, "low": float("nan"), "high": 1.0, "k": 5, "num_queries": 3}, "low is nan"),
        ({"mean": 1.0, "low": 1.0, "high": 1.0, "k": 5, "num_queries": True}, "num_queries is Tru"),
    ],
)
def test_a_damaged_recall_is_refused(value: Any, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        MeasuredRecall.from_json(value)
