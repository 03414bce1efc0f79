"""The build of FAISS's index: what trains it, and that no catalogue is copied on the way."""

import tracemalloc
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

from recsys.index import FaissIndex, IndexSettings, read_vectors, write_vectors
from recsys.index.build_inner import num_training_vectors, training_part
from recsys.index.plan import IndexPlan

COUNT, DIM = 200_000, 16


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> NDArray[np.float32]:
    path = tmp_path_factory.mktemp("vectors") / "vectors.npy"
    rng = np.random.default_rng(0)
    write_vectors(path, rng.standard_normal((COUNT, DIM), dtype=np.float32))
    return read_vectors(path)


def make_plan(num_training: int) -> IndexPlan:
    return IndexPlan(kind="ivf_flat", factory="", num_training=num_training, num_lists=8)


@pytest.mark.parametrize("kind", ["flat", "ivf_flat", "ivf_sq8", "ivf_fp16", "ivf_pq_fast"])
def test_a_build_copies_a_part_of_the_vectors_at_a_time(
    kind: str, vectors: NDArray[np.float32]
) -> None:
    tracemalloc.start()  # sees what numpy allocates, and not the lists of FAISS
    try:
        index = FaissIndex.build(vectors, IndexSettings(kind=kind, num_lists=8))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The 65,536 vectors that train are a third; rows and blocks some MB more.
    assert peak < 0.75 * vectors.nbytes
    assert index.num_candidates == COUNT
    queries = np.array(vectors[:300])
    found, truth = index.search(queries, 1), index.exact.search(queries, 1)
    assert (found.candidate_rows == truth.candidate_rows).mean() > 0.5  # by chance: 1 in 200,000


def test_what_trains_is_drawn_once_and_for_all(vectors: NDArray[np.float32]) -> None:
    plan = make_plan(1000)
    part = training_part(vectors, plan)
    assert num_training_vectors(COUNT, plan) == len(part) == 128_000
    assert np.array_equal(part, training_part(vectors, plan))
    rows = {vector.tobytes(): row for row, vector in enumerate(vectors)}
    found = [rows[vector.tobytes()] for vector in part]
    assert (np.diff(found) > 0).all()  # rising, so none twice
    # Of a uniform draw the mean row errs by 100,000 * sqrt(1/3) / sqrt(128,000) * 0.6 = 97.
    assert abs(np.mean(found) - COUNT / 2) < 500


def test_a_small_catalogue_trains_as_a_whole(vectors: NDArray[np.float32]) -> None:
    some = vectors[:65_536]
    assert np.array_equal(training_part(some, make_plan(300)), some)
    assert len(training_part(vectors, make_plan(300))) == 65_536
    assert len(training_part(vectors, make_plan(COUNT))) == COUNT


def test_bytes_of_a_graph_span_the_values_of_all_vectors() -> None:
    made = np.random.default_rng(1).standard_normal((40_000, 4), dtype=np.float32)
    made[39_999] = [9, -9, 9, -9]  # in the last block
    made = made[-20_000:]
    built: Any = FaissIndex.build(made, IndexSettings(kind="hnsw_sq8", m=4, ef_construction=8))
    whole: Any = faiss.index_factory(4, "HNSW4,SQ8", faiss.METRIC_INNER_PRODUCT)
    whole.train(made)
    ranges = [
        faiss.vector_to_array(faiss.downcast_index(inner.storage).sq.trained)  # type: ignore[attr-defined]
        for inner in (built.inner, whole)
    ]
    assert np.array_equal(ranges[0], ranges[1])


def test_the_same_vectors_give_the_same_lists(vectors: NDArray[np.float32], tmp_path: Path) -> None:
    for name in ("a", "b"):
        index = FaissIndex.build(vectors, IndexSettings(kind="ivf_sq8", num_lists=8))
        faiss.write_index(index.inner, str(tmp_path / name))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
