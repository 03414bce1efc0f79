"""FAISS's own indexes, without this package around them.

Dimensions: C candidates, D embedding width, B queries, k results asked for.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from recsys.benchmark.index_peer import Peer, Rows
from recsys.foundations import thread_bound
from recsys.index import FaissIndex, IndexSettings, find_centroids, index_bytes, plan_index

_faiss: Any = faiss  # its type stubs lack some of the names it has
_LISTS = {
    "IVF-Flat": "ivf_flat",
    "IVF-SQ8": "ivf_sq8",
    "IVF-fp16": "ivf_fp16",
    "IVF-PQ fast-scan, refined": "ivf_pq_fast",
}
_OVERFETCH = (16, 12, 8, 6, 4, 3, 2, 1)
Make = Callable[[], Peer]


def faiss_peers(
    vectors: NDArray[np.float32], *, list_counts: tuple[int, ...], m: int, ef_construction: int
) -> Iterator[tuple[str, Make]]:
    """Give name and maker of each of FAISS's indexes.

    Args:
        vectors: [C, D].
        list_counts: Of those with lists; the centroids of each number are found once, by k-means
            on a sample.
        m: Neighbours in the graph.
        ef_construction: Breadth of the search that places a vector there.
    """
    graph = IndexSettings(kind="hnsw", m=m, ef_construction=ef_construction, reproducible=False)
    yield "faiss HNSW", partial(_make_graph, vectors, graph)
    for count in list_counts:
        lists = _Lists(vectors, count)
        for name, kind in _LISTS.items():
            label = f"faiss {name.replace('IVF', f'IVF{count}')}"
            yield label, partial(lists.make, label, kind)


class _Lists:
    """Indexes with lists around the same centroids."""

    def __init__(self, vectors: NDArray[np.float32], num_lists: int) -> None:
        self._vectors, self._num_lists = vectors, num_lists
        self._centroids: NDArray[np.float32] | None = None
        self._seconds = 0.0  # that it took to find them

    def make(self, name: str, kind: str) -> Peer:
        """Build one; the search for the centroids counts as part of each build."""
        if self._centroids is None:
            started = time.monotonic()
            self._centroids = find_centroids(self._vectors, self._num_lists)
            self._seconds = time.monotonic() - started
        settings = IndexSettings(kind=kind, num_lists=self._num_lists, num_probes=1)
        started = time.monotonic()
        inner = FaissIndex.build(self._vectors, settings, centroids=self._centroids).inner
        seconds = self._seconds + time.monotonic() - started
        num_bytes, ask = _bytes(self._vectors, settings), partial(_ask_lists, inner)
        overfetch: tuple[int, ...] = (1,)
        if kind == "ivf_pq_fast":
            num_bytes += self._vectors.nbytes
            ask = partial(_ask_refined, _Refined.over(inner, self._vectors))
            overfetch = _OVERFETCH
        return Peer(
            name, "faiss", "num_probes", self._num_lists, ask, num_bytes, seconds, overfetch
        )


def _make_graph(vectors: NDArray[np.float32], settings: IndexSettings) -> Peer:
    started = time.monotonic()
    inner = FaissIndex.build(vectors, settings).inner
    seconds = time.monotonic() - started
    look_up = partial(_ask_graph, inner)
    num_bytes = _bytes(vectors, settings)
    return Peer(
        "faiss HNSW", "faiss", "ef_search", len(vectors), look_up, num_bytes, seconds,
        counts_candidates=True,
    )  # fmt: skip


@dataclass(frozen=True)
class _Refined:
    """What FAISS finds, scored anew by FAISS from the vectors."""

    whole: Any
    codes: Any  # Python must keep this and the vectors, to which C++ points
    vectors: NDArray[np.float32]

    @classmethod
    def over(cls, codes: Any, vectors: NDArray[np.float32]) -> "_Refined":
        return cls(_faiss.IndexRefineFlat(codes, _faiss.swig_ptr(vectors)), codes, vectors)


def _ask_graph(
    inner: Any, queries: NDArray[np.float32], k: int, value: int, overfetch: int
) -> Rows:
    del overfetch
    inner.hnsw.efSearch = value
    return _ask(inner, queries, k)


def _ask_lists(
    inner: Any, queries: NDArray[np.float32], k: int, value: int, overfetch: int
) -> Rows:
    del overfetch
    inner.nprobe = value
    return _ask(inner, queries, k)


def _ask_refined(
    refined: _Refined, queries: NDArray[np.float32], k: int, value: int, overfetch: int
) -> Rows:
    refined.codes.nprobe, refined.whole.k_factor = value, overfetch
    return _ask(refined.whole, queries, k)


def _ask(inner: Any, queries: NDArray[np.float32], k: int) -> Rows:
    _faiss.omp_set_num_threads(thread_bound() or _faiss.omp_get_max_threads())
    rows: Rows = inner.search(queries, k)[1]
    return rows


def _bytes(vectors: NDArray[np.float32], settings: IndexSettings) -> int:
    count, dim = vectors.shape
    plan = plan_index(settings, num_candidates=count, dim=dim, quiet=True)
    return index_bytes(plan, settings, count, dim)
