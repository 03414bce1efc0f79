"""The benchmark of indexes: what is timed meets the target, on vectors that have clusters."""

import numpy as np
import pytest

from recsys.benchmark import BenchmarkResult, IndexCase, measure_index
from recsys.data import make_clustered_vectors


def measure_small() -> BenchmarkResult:
    case = IndexCase(
        catalogue_size=3000,
        dim=8,
        num_clusters=20,
        spread=0.5,
        num_queries=60,
        queries_at_once=16,
        k=5,
        target_recall=0.8,
        build_minutes=1,
        m=8,
        ef_construction=40,
    )
    return measure_index(case, rounds=2, seed=0)


def test_everything_timed_finds_what_was_asked_for() -> None:
    result = measure_small()
    [table] = result.tables
    names = list(result.measurements)
    rows = {row[0]: dict(zip(table.headings, row, strict=True)) for row in table.rows}
    assert list(rows)[: len(names)] == names
    assert names[0].startswith("index=auto: ")
    kinds = ("HNSW ef_search=", "IVF55-Flat num_probes=", "IVF55-SQ8", "IVF55-fp16")
    for word in (*kinds, "IVF55-PQ fast-scan, refined"):
        assert any(name.startswith(f"faiss {word}") for name in names), word
    for name in names:
        recall = float(rows[name]["recall"].split()[0])
        assert recall > 0.75 or "FAISS alone" in name, name  # the target within 60 queries' spread
    assert rows["exact search"]["recall"].startswith("1.0000")
    assert result.measurements[names[0]].units == 60


def test_the_last_row_is_the_fastest_that_was_set_by_hand() -> None:
    result = measure_small()
    last = result.tables[0].rows[-1][0]
    rates = {name: one.rate for name, one in result.measurements.items()}
    by_hand = [name for name in rates if name.split()[0] in ("faiss", "hnswlib", "usearch")]
    best = max(by_hand, key=lambda name: rates[name])
    assert last == f"index=auto against the best of FAISS, hnswlib and usearch: {best}"
    assert result.ratios[0].second == best
    ours, theirs = next(iter(result.measurements.values())), result.measurements[best]
    pairs = zip(ours.seconds, theirs.seconds, strict=True)
    faster = sorted(their / our for our, their in pairs)
    middle = sum(faster) / 2  # of two rounds
    expected = f"{middle:.2f} ({faster[0]:.2f} to {faster[1]:.2f})"
    assert result.tables[0].rows[-1][3] == expected


def test_packages_that_are_missing_are_named_with_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def find(name: str) -> object | None:
        return None if name in ("hnswlib", "scann", "usearch") else object()

    monkeypatch.setattr("recsys.benchmark.index_peers.importlib.util.find_spec", find)
    result = measure_small()
    words = "hnswlib, usearch, scann-core left out: the extra index-peers brings them"
    assert words in result.about
    assert not [name for name in result.measurements if name.startswith(("hnswlib", "usearch"))]


def test_clustered_vectors_are_unit_reproducible_and_clustered() -> None:
    def make(spread: float) -> tuple[np.ndarray, np.ndarray]:
        return make_clustered_vectors(500, 40, dim=12, num_clusters=7, spread=spread, seed=3)

    vectors, queries = make(0.0)
    assert vectors.shape == (500, 12)
    assert queries.shape == (40, 12)
    assert len(np.unique(vectors.round(4), axis=0)) == 7  # without spread only the centres
    wide, asked = make(0.3)
    assert np.array_equal(wide, make(0.3)[0])
    np.testing.assert_allclose(np.linalg.norm(wide, axis=1), 1, rtol=1e-5)
    nearest = (asked @ wide.T).max(axis=1)
    assert (nearest < 0.9999).all()  # no query is a candidate
    assert np.median(nearest) > 0.85  # yet each has a cluster around it
