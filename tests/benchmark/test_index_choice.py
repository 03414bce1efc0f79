"""The benchmark of indexes: what is timed meets the target, on vectors that have clusters."""

import re

import numpy as np

from recsys.benchmark import measure_index
from recsys.data import make_clustered_vectors


def test_everything_timed_finds_what_was_asked_for() -> None:
    result = measure_index(
        catalogue_size=3000,
        dim=8,
        num_clusters=20,
        spread=0.5,
        num_queries=60,
        queries_at_once=16,
        k=5,
        target_recall=0.8,
        rounds=1,
        seed=0,
    )
    names = list(result.measurements)
    assert names[0].startswith("index=auto: ")
    for word in ("faiss Flat", "faiss HNSW ef_search=", "faiss IVF-Flat num_probes="):
        assert any(name.startswith(word) for name in names)
    recalls = {name: float(re.findall(r"recall ([\d.]+)$", name)[0]) for name in names}
    for name, recall in recalls.items():
        assert recall > 0.75 or "FAISS alone" in name, name  # the target within 60 queries' spread
    assert [recall for name, recall in recalls.items() if "Flat, recall" in name][-1] == 1.0
    assert {ratio.first for ratio in result.ratios} == {names[0]}
    assert len(result.ratios) == len(names) - 1
    assert result.measurements[names[0]].units == 60


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
