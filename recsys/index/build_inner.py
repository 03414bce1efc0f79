"""The FAISS index inside an index: trained, filled, and told apart from its siblings.

Dimensions: C candidates, D embedding width.
"""

from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, Progress, make_numpy_generator
from recsys.index.mapped import share_vectors
from recsys.index.plan import IndexPlan, plan_index
from recsys.index.settings import GRAPH_KINDS, IndexSettings

_faiss: Any = faiss  # its type stubs lack some of the names it has
_VECTORS_AT_ONCE = 16_384
_FEWEST_TRAINING = 65_536
# FAISS takes up to 256. Of 64 the recall falls by up to 0.008, of 32 by 0.03 (docs/performance.md).
TRAINING_PER_CENTROID = 128


def build_inner(
    vectors: NDArray[np.float32],
    settings: IndexSettings,
    centroids: NDArray[np.float32] | None = None,
) -> Any:
    """Train FAISS's index on the vectors and add them.

    A flat index and a graph over whole vectors keep no copy of them. What is trained sees a part of
    a large catalogue, drawn with a fixed seed; the vectors are read block by block.

    Args:
        vectors: [C, D], float32, finite, at least one; kept, not changed afterwards.
        settings: What to build.
        centroids: [num_lists, D], float32; None: they are searched for.

    Raises:
        ConfigError: The settings are impossible for this width.
    """
    plan = plan_index(settings, num_candidates=len(vectors), dim=vectors.shape[1])
    inner: Any = faiss.index_factory(vectors.shape[1], plan.factory, faiss.METRIC_INNER_PRODUCT)
    is_graph = plan.kind in GRAPH_KINDS
    if is_graph:
        inner.hnsw.efConstruction = settings.ef_construction
        inner.hnsw.efSearch = settings.ef_search
    if plan.num_lists:
        _quiet_training(inner)
        _leave_codes_unordered(inner)
        if centroids is not None:
            inner.quantizer.add(np.ascontiguousarray(centroids))
        inner.nprobe = plan.num_probes
    if not inner.is_trained:
        inner.train(_extremes(vectors) if is_graph else training_part(vectors, plan))
    if is_graph or not share_vectors(inner, vectors):
        add_vectors(inner, vectors, one_thread=is_graph and settings.reproducible)
        share_vectors(inner, vectors)
    return inner


def training_part(vectors: NDArray[np.float32], plan: IndexPlan) -> NDArray[np.float32]:
    """Draw the vectors that train lists and codes: 128 for each centroid, at least 65,536; rising.

    Args:
        vectors: [C, D].
        plan: Of the index.
    """
    wanted = num_training_vectors(len(vectors), plan)
    if wanted == len(vectors):
        return np.ascontiguousarray(vectors, np.float32)
    rng = make_numpy_generator(0, "vectors that train an index")
    rows = np.sort(rng.choice(len(vectors), wanted, replace=False, shuffle=False))
    return np.ascontiguousarray(vectors[rows], np.float32)


def num_training_vectors(num_candidates: int, plan: IndexPlan) -> int:
    """Give how many vectors train an index of C."""
    return min(num_candidates, max(TRAINING_PER_CENTROID * plan.num_training, _FEWEST_TRAINING))


def _extremes(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Give the smallest and the largest value of each dimension, all that bytes need: [2, D]."""
    low, high = (vectors[:1].copy() for _ in range(2))
    for start in range(0, len(vectors), _VECTORS_AT_ONCE):
        part = vectors[start : start + _VECTORS_AT_ONCE]
        np.minimum(low, part.min(axis=0), out=low)
        np.maximum(high, part.max(axis=0), out=high)
    return np.concatenate([low, high])


def kind_of(inner: Any) -> str:
    """Tell which kind of the settings an index of FAISS is.

    Raises:
        ArgumentError: It is one that is never built here.
    """
    if isinstance(inner, faiss.IndexIVFScalarQuantizer):
        kinds = {_faiss.ScalarQuantizer.QT_8bit: "ivf_sq8"}
        kinds[_faiss.ScalarQuantizer.QT_fp16] = "ivf_fp16"
        if inner.sq.qtype in kinds:
            return kinds[inner.sq.qtype]
    for known, kind in _KINDS.items():
        if isinstance(inner, known):
            return kind
    raise ArgumentError(f"`inner` is a {type(inner).__name__}, which is never built here.")


_KINDS = {
    faiss.IndexFlat: "flat",
    faiss.IndexHNSWFlat: "hnsw",
    _faiss.IndexHNSWSQ: "hnsw_sq8",
    faiss.IndexIVFFlat: "ivf_flat",
    faiss.IndexIVFPQ: "ivf_pq",
    _faiss.IndexIVFPQFastScan: "ivf_pq_fast",
}


def _quiet_training(inner: Any) -> None:
    """Let the plan's own warning stand alone: FAISS prints one for each clustering."""
    inner.cp.min_points_per_centroid = 1
    if hasattr(inner, "pq"):
        inner.pq.cp.min_points_per_centroid = 1


def _leave_codes_unordered(inner: Any) -> None:
    """Spare the seconds in which FAISS orders the codes of PQ by Hamming distance: none is used."""
    if hasattr(inner, "do_polysemous_training"):
        inner.do_polysemous_training = False


def add_vectors(inner: Any, vectors: NDArray[np.float32], *, one_thread: bool) -> None:
    """Add vectors to a trained index, block by block.

    Args:
        inner: The FAISS index.
        vectors: [n, D], float32.
        one_thread: Whether FAISS is held to one, so that a graph is the same each time.
    """
    threads = faiss.omp_get_max_threads()
    if one_thread:
        faiss.omp_set_num_threads(1)
    try:
        with Progress("indexing", len(vectors), "vectors") as progress:
            for start in range(0, len(vectors), _VECTORS_AT_ONCE):
                part = np.ascontiguousarray(vectors[start : start + _VECTORS_AT_ONCE], np.float32)
                inner.add(part)
                progress.advance(len(part))
    finally:
        faiss.omp_set_num_threads(threads)
