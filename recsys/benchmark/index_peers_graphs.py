"""The graphs of hnswlib and usearch, from the extra `index-peers`.

Dimensions: C candidates, D embedding width, B queries, k results asked for.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.benchmark.index_peer import Peer, Rows
from recsys.foundations import Progress, available_cores, thread_bound

_VECTORS_AT_ONCE = 16_384
Make = Callable[[], Peer]


def hnswlib_peers(
    vectors: NDArray[np.float32], *, m: int, ef_construction: int
) -> Iterator[tuple[str, Make]]:
    """Give name and maker of hnswlib's graph.

    Args:
        vectors: [C, D].
        m: Neighbours of a vector.
        ef_construction: Breadth of the search that places a vector.
    """
    yield "hnswlib", partial(_make_hnswlib, vectors, m, ef_construction)


def usearch_peers(
    vectors: NDArray[np.float32], *, m: int, ef_construction: int
) -> Iterator[tuple[str, Make]]:
    """Give name and maker of usearch's graphs, over float32 and over bytes; see `hnswlib_peers`."""
    for kind in ("f32", "i8"):
        yield f"usearch {kind}", partial(_make_usearch, vectors, kind, m, ef_construction)


def _make_hnswlib(vectors: NDArray[np.float32], m: int, ef_construction: int) -> Peer:
    import hnswlib

    index: Any = hnswlib.Index(space="ip", dim=vectors.shape[1])
    index.init_index(len(vectors), ef_construction=ef_construction, M=m, random_seed=0)
    seconds = _add("hnswlib", vectors, partial(index.add_items, num_threads=_threads()))
    return Peer(
        "hnswlib", "hnswlib", "ef", len(vectors), partial(_ask_hnswlib, index),
        index.index_file_size(), seconds, counts_candidates=True,
    )  # fmt: skip


def _ask_hnswlib(
    index: Any, queries: NDArray[np.float32], k: int, value: int, overfetch: int
) -> Rows:
    del overfetch
    index.set_ef(value)
    rows = index.knn_query(queries, k=k, num_threads=_threads())[0]
    return np.asarray(rows, np.int64)


def _make_usearch(vectors: NDArray[np.float32], dtype: str, m: int, ef_construction: int) -> Peer:
    from usearch.index import Index

    name, largest = f"usearch {dtype}", len(vectors)
    index: Any = Index(
        ndim=vectors.shape[1],
        metric="ip",
        dtype=dtype,
        connectivity=m,
        expansion_add=ef_construction,
    )

    def add(part: NDArray[np.float32], keys: NDArray[np.int64]) -> None:
        index.add(keys.astype(np.uint64), part, threads=_threads())

    seconds = _add(name, vectors, add)
    look_up = partial(_ask_usearch, index)
    return Peer(
        name, "usearch", "expansion", largest, look_up, index.memory_usage, seconds,
        counts_candidates=True,
    )  # fmt: skip


def _ask_usearch(
    index: Any, queries: NDArray[np.float32], k: int, value: int, overfetch: int
) -> Rows:
    del overfetch
    index.expansion_search = value
    found = index.search(queries, k, threads=_threads())
    rows = np.asarray(found.keys).reshape(len(queries), -1).astype(np.int64)
    counts = np.asarray(getattr(found, "counts", np.full(len(rows), rows.shape[1])))
    rows[np.arange(rows.shape[1])[None, :] >= counts.reshape(-1, 1)] = -1
    return rows


def _add(name: str, vectors: NDArray[np.float32], add: Callable[..., object]) -> float:
    """Add all vectors under their rows; give the seconds it took."""
    started = time.monotonic()
    with Progress(f"building {name}", len(vectors), "vectors") as progress:
        for start in range(0, len(vectors), _VECTORS_AT_ONCE):
            part = np.ascontiguousarray(vectors[start : start + _VECTORS_AT_ONCE])
            add(part, np.arange(start, start + len(part)))
            progress.advance(len(part))
    return time.monotonic() - started


def _threads() -> int:
    return thread_bound() or available_cores()
