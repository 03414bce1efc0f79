"""ScaNN inside an index: what it finds, filters, batches, its saved form, and its absence."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from recsys.foundations import (
    ArgumentError,
    ConfigError,
    FormatError,
    MissingExtraError,
    MissingFileError,
    Ragged,
    held_threads,
)
from recsys.index import (
    ChangedIndex,
    Changes,
    FaissIndex,
    IndexSettings,
    ScannIndex,
    build_main,
    fold,
    plan_index,
    read_main,
    write_main,
)
from recsys.index.scann_library import quiet_stderr

SETTINGS = IndexSettings(kind="scann", num_lists=20, num_probes=8, overfetch=3)


def make_vectors(count: int = 2000, dim: int = 16, *, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)


@pytest.fixture(scope="module")
def index() -> ScannIndex:
    pytest.importorskip("scann")
    return ScannIndex.build(make_vectors(), SETTINGS)


def test_all_leaves_and_enough_candidates_give_what_exact_search_gives(index: ScannIndex) -> None:
    queries = make_vectors(50, seed=1)
    found = index.with_dial(num_probes=20, overfetch=40).search(queries, 10)
    exact = index.exact.search(queries, 10)
    assert np.array_equal(found.candidate_rows, exact.candidate_rows)
    assert np.array_equal(found.scores, exact.scores)


def test_the_dial_trades_recall_for_work(index: ScannIndex) -> None:
    queries = make_vectors(200, seed=1)
    truth = index.exact.search(queries, 10)

    def share(probes: int) -> float:
        hits = index.with_dial(num_probes=probes, overfetch=40).search(queries, 10)
        same = [np.intersect1d(a, b).size for (a, _), (b, _) in zip(hits, truth, strict=True)]
        return float(np.mean(same)) / 10

    assert share(1) < share(4) < share(20)
    assert share(20) > 0.98


def test_results_do_not_depend_on_batches_or_threads(index: ScannIndex) -> None:
    queries = make_vectors(300, seed=2)
    whole = index.search(queries, 7)
    with held_threads(2):
        threaded = index.search(queries, 7)
    assert np.array_equal(whole.candidate_rows, threaded.candidate_rows)
    for size in (1, 7):
        parts = [index.search(queries[at : at + size], 7) for at in range(0, 300, size)]
        assert np.array_equal(
            np.concatenate([part.candidate_rows for part in parts]), whole.candidate_rows
        )
        assert np.array_equal(np.concatenate([part.scores for part in parts]), whole.scores)


def test_several_interests_are_merged_by_the_largest_score(index: ScannIndex) -> None:
    queries = make_vectors(40, seed=3).reshape(20, 2, 16)
    every = index.with_dial(num_probes=20, overfetch=40).search(queries, 10)
    assert np.array_equal(every.candidate_rows, index.exact.search(queries, 10).candidate_rows)


def test_a_query_with_many_excluded_rows_gets_its_k_others(index: ScannIndex) -> None:
    queries = make_vectors(3, seed=4)
    best = index.exact.search(queries, 1500).lists
    exclude = Ragged(np.array([0, 1500, 1500, 1600]), np.concatenate([best[0], best[2][:100]]))
    hits = index.search(queries, 10, exclude=exclude)
    assert hits.lengths.tolist() == [10, 10, 10]
    for number, (rows, _) in enumerate(hits):
        assert not np.isin(rows, exclude[number]).any()


def test_allowed_rows_are_scored_exactly(index: ScannIndex) -> None:
    queries = make_vectors(5, seed=5)
    allowed = np.arange(0, 2000, 2)
    few = index.with_dial(num_probes=1).search(queries, 30, allowed=allowed)
    exact = index.exact.search(queries, 30, allowed=allowed)
    assert np.array_equal(few.candidate_rows, exact.candidate_rows)


def test_the_same_vectors_give_the_same_files_with_any_threads(
    index: ScannIndex, tmp_path: Path
) -> None:
    with held_threads(2):
        again = ScannIndex.build(make_vectors(), SETTINGS)
    for name, one in (("a", index), ("b", again)):
        (tmp_path / name).mkdir()
        write_main(tmp_path / name, one)
    files = sorted(file for file in (tmp_path / "a").rglob("*") if file.is_file())
    assert len(files) == 7
    for file in files:
        other = tmp_path / "b" / file.relative_to(tmp_path / "a")
        assert file.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("scale", [1e-25, 1e-3, 1e17])
def test_vectors_of_any_length_are_found(scale: float) -> None:
    pytest.importorskip("scann")
    index = ScannIndex.build(make_vectors() * np.float32(scale), SETTINGS)
    queries = make_vectors(100, seed=6) * np.float32(1e10)
    near = index.with_dial(num_probes=20, overfetch=40).search(queries, 10)
    exact = index.exact.search(queries, 10)
    same = [np.intersect1d(a, b).size for (a, _), (b, _) in zip(near, exact, strict=True)]
    assert np.mean(same) > 9.5


@pytest.mark.parametrize("dim", [1, 2, 3, 7])
def test_any_width_is_built(dim: int) -> None:
    pytest.importorskip("scann")
    index = ScannIndex.build(make_vectors(500, dim), IndexSettings(kind="scann"))
    rows, scores = index.search(make_vectors(1, dim, seed=7), 20)[0]
    assert len(np.unique(rows)) == 20
    assert (np.diff(scores) <= 0).all()


def test_equal_and_zero_vectors_are_ordered_by_row() -> None:
    pytest.importorskip("scann")
    index = ScannIndex.build(np.zeros((200, 4), np.float32), IndexSettings(kind="scann"))
    rows, scores = index.search(np.ones((1, 4), np.float32), 200)[0]
    assert rows.tolist() == list(range(200))
    assert not scores.any()


def test_plans_leaves_for_the_catalogue_and_a_flat_index_for_too_few_vectors(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # 2 sqrt(10,000) = 200 leaves, an eighth of them read; 9 dimensions are 5 codes of 2, one cut.
    plan = plan_index(IndexSettings(kind="scann"), num_candidates=10_000, dim=9)
    assert (plan.num_lists, plan.num_probes, plan.factory) == (200, 25, "ScaNN200,AH5x4")
    built = build_main(make_vectors(15), IndexSettings(kind="scann"))
    assert isinstance(built, FaissIndex)
    assert "15 vectors are too few to train an index ScaNN8,AH8x4, which needs 16" in caplog.text
    with pytest.raises(ConfigError, match=r"index\.num_codes .* must divide the 16 dimensions"):
        build_main(make_vectors(), IndexSettings(kind="scann", num_codes=5))


def test_a_searcher_of_other_vectors_is_refused(index: ScannIndex) -> None:
    with pytest.raises(ArgumentError, match="`searcher` must hold 1999 vectors, got 2000"):
        ScannIndex(make_vectors(1999), index.searcher, SETTINGS)


def test_a_read_index_gives_the_same_hits(index: ScannIndex, tmp_path: Path) -> None:
    write_main(tmp_path, index)
    again = read_main(tmp_path, make_vectors(), SETTINGS)
    queries = make_vectors(20, seed=8)
    assert np.array_equal(
        again.search(queries, 9).candidate_rows, index.search(queries, 9).candidate_rows
    )
    assert sorted(file.name for file in tmp_path.iterdir()) == ["index.json", "index.scann"]
    assert not list(tmp_path.rglob("*.pkl"))


def test_damaged_files_are_refused_or_lose_recall_alone(index: ScannIndex, tmp_path: Path) -> None:
    write_main(tmp_path, index)
    rng = np.random.default_rng(0)
    files = sorted((tmp_path / "index.scann").iterdir())
    assert len(files) == 6
    refused = 0
    for path in files:
        whole = path.read_bytes()
        for cut in (0, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:cut])
            with pytest.raises(FormatError, match=r"index\.scann is damaged"):
                read_main(tmp_path, make_vectors(), SETTINGS)
        for _ in range(5):
            damaged = bytearray(whole)
            for place in rng.integers(0, len(whole), 3):
                damaged[place] = rng.integers(256)
            path.write_bytes(damaged)
            try:
                read = read_main(tmp_path, make_vectors(), SETTINGS)
            except FormatError:
                refused += 1
                continue
            rows, _ = read.search(make_vectors(1, seed=9), 10)[0]
            assert len(np.unique(rows)) == 10
            assert rows.max() < 2000
        path.write_bytes(whole)
    assert refused > 5


def test_files_of_another_catalogue_or_lacking_are_refused(
    index: ScannIndex, tmp_path: Path
) -> None:
    write_main(tmp_path, index)
    with pytest.raises(FormatError, match="holds 2000 vectors, the item vectors are 1999"):
        read_main(tmp_path, make_vectors(1999), SETTINGS)
    with pytest.raises(FormatError, match="no ScaNN index of vectors of width 17"):
        read_main(tmp_path, make_vectors(2000, 17), SETTINGS)
    (tmp_path / "index.scann" / "ah_codebook.pb").unlink()
    with pytest.raises(MissingFileError, match=r"ah_codebook\.pb does not exist"):
        read_main(tmp_path, make_vectors(), SETTINGS)


def test_without_the_package_one_sentence_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "scann", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'recsys-retrieval\[scann\]'"):
        build_main(make_vectors(), SETTINGS)


def test_a_stored_index_without_the_package_names_the_extra(
    index: ScannIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_main(tmp_path, index)
    monkeypatch.setitem(sys.modules, "scann", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'recsys-retrieval\[scann\]'"):
        read_main(tmp_path, make_vectors(), SETTINGS)


def test_lines_that_the_library_logs_are_dropped_and_others_kept(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with quiet_stderr():
        os.write(2, b"I0000 00:00:1796085336.056287 1233 partitioner.cc:72] Size of sample\n")
        os.write(2, b"a line of somebody else\n")
    assert capfd.readouterr().err == "a line of somebody else\n"


def test_changes_beside_it_are_searched_with_it_and_folded_into_a_new_one(
    index: ScannIndex,
) -> None:
    rows, vectors = np.array([3, 5, 2000]), 3 * make_vectors(3, seed=10)
    changed = ChangedIndex(
        index.with_dial(num_probes=20, overfetch=40),
        Changes(rows, vectors, np.array([7, 8]), 2001),
    )
    queries = np.concatenate([vectors, make_vectors()[[7, 8]], make_vectors(50, seed=11)])
    found, exact = changed.search(queries, 10), changed.exact.search(queries, 10)
    assert np.array_equal(found.candidate_rows, exact.candidate_rows)
    assert [rows[0] for rows, _ in found][:3] == [3, 5, 2000]
    assert not np.isin(found.candidate_rows, [7, 8]).any()
    folded = fold(changed, retrain=False)
    assert isinstance(folded, ScannIndex)
    assert folded.num_candidates == 2001
    assert np.array_equal(folded.vectors[rows], vectors)


def test_queries_so_long_that_scores_leave_float32_are_refused(index: ScannIndex) -> None:
    queries = make_vectors(3, seed=1)
    queries[1] = 3e38
    with pytest.raises(ArgumentError, match="so long that scores would leave float32"):
        index.search(queries, 5)
