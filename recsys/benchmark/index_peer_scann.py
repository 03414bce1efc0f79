"""ScaNN's tree with asymmetric hashing and exact reordering, from the extra `index-peers`.

Dimensions: C candidates, D embedding width, B queries, k results asked for.
"""

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.benchmark.index_peer import Peer, Rows
from recsys.foundations import available_cores, thread_bound

_OVERFETCH = (8, 6, 4, 3, 2, 1)
_DIMENSIONS_A_CODE = 2
_THRESHOLD = 0.2  # of the anisotropic quantisation, as its authors set it
_MOST_TRAINING = 250_000
Make = Callable[[], Peer]


def scann_peers(vectors: NDArray[np.float32], *, k: int) -> Iterator[tuple[str, Make]]:
    """Give name and maker of ScaNN's index.

    Args:
        vectors: [C, D].
        k: Results that will be asked for.
    """
    yield "scann tree, AH, reorder", partial(_make, vectors, k)


def _make(vectors: NDArray[np.float32], k: int) -> Peer:
    from scann import scann_ops_pybind

    count, dim = vectors.shape
    leaves = max(round(2 * math.sqrt(count)), 1)
    threads = thread_bound() or available_cores()
    started = time.monotonic()
    builder: Any = scann_ops_pybind.builder(vectors, k, "dot_product")
    index = (
        builder.set_n_training_threads(threads)
        .tree(leaves, leaves, training_sample_size=min(count, _MOST_TRAINING))
        .score_ah(_DIMENSIONS_A_CODE, anisotropic_quantization_threshold=_THRESHOLD)
        .reorder(k * max(_OVERFETCH))
        .build()
    )
    return Peer(
        name="scann tree, AH, reorder",
        library="scann",
        dial="leaves",
        largest=leaves,
        look_up=partial(_ask, index),
        num_bytes=_bytes(count, dim, leaves),
        build_seconds=time.monotonic() - started,
        overfetch=_OVERFETCH,
    )


def _ask(index: Any, queries: NDArray[np.float32], k: int, value: int, overfetch: int) -> Rows:
    single = thread_bound() == 1
    search = index.search_batched if single else index.search_batched_parallel
    rows = search(
        queries,
        final_num_neighbors=k,
        pre_reorder_num_neighbors=k * overfetch,
        leaves_to_search=value,
    )[0]
    return _filled(np.asarray(rows, np.int64), k)


def _filled(rows: Rows, k: int) -> Rows:
    """Fill lists that came out short with -1."""
    short = k - rows.shape[1]
    return rows if short <= 0 else np.pad(rows, ((0, 0), (0, short)), constant_values=-1)


def _bytes(count: int, dim: int, leaves: int) -> int:
    """Estimate: a vector itself, half a byte a code, twice for spilling is not done, its row."""
    return round(count * (4 * dim + dim / _DIMENSIONS_A_CODE / 2 + 4) + 4 * leaves * dim)
