"""The FAISS index inside an index: trained, filled, and told apart from its siblings.

Dimensions: C candidates, D embedding width.
"""

from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, Progress
from recsys.index.plan import plan_index
from recsys.index.settings import GRAPH_KINDS, IndexSettings

_faiss: Any = faiss  # its type stubs lack some of the names it has
_VECTORS_AT_ONCE = 16_384


def build_inner(
    vectors: NDArray[np.float32],
    settings: IndexSettings,
    centroids: NDArray[np.float32] | None = None,
) -> Any:
    """Train FAISS's index on the vectors and add them.

    Args:
        vectors: [C, D], float32, finite, at least one.
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
        inner.train(np.ascontiguousarray(vectors))
    _add(inner, vectors, one_thread=is_graph and settings.reproducible)
    return inner


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


def _add(inner: Any, vectors: NDArray[np.float32], *, one_thread: bool) -> None:
    threads = faiss.omp_get_max_threads()
    if one_thread:
        faiss.omp_set_num_threads(1)
    try:
        with Progress("indexing", len(vectors), "vectors") as progress:
            for start in range(0, len(vectors), _VECTORS_AT_ONCE):
                part = np.ascontiguousarray(vectors[start : start + _VECTORS_AT_ONCE])
                inner.add(part)
                progress.advance(len(part))
    finally:
        faiss.omp_set_num_threads(threads)
