"""Made-up embeddings with clusters, and queries of the same distribution.

Dimensions: C candidates, Q queries, D embedding width.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import check_positive, make_numpy_generator

_ROWS_AT_ONCE = 1 << 16


def make_clustered_vectors(
    num_candidates: int, num_queries: int, *, dim: int, num_clusters: int, spread: float, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Draw unit vectors around cluster centres; cluster sizes fall as rank to the power -0.5.

    A centre is normally distributed in D dimensions, a vector its centre and `spread` times another
    normal draw, at length 1.

    Args:
        num_candidates: C.
        num_queries: Q; none of them is a candidate.
        dim: D.
        num_clusters: Centres; at least 1.
        spread: 0: all vectors of a cluster are equal; far above 1: there are no clusters.
        seed: Of the draws.

    Returns:
        The candidates [C, D] and the queries [Q, D], float32.
    """
    blocks = clustered_blocks(
        (num_candidates, num_queries), dim=dim, num_clusters=num_clusters, spread=spread, seed=seed
    )
    made = np.empty((num_candidates + num_queries, dim), np.float32)
    start = 0
    for block in blocks:
        made[start : start + len(block)] = block
        start += len(block)
    return made[:num_candidates], made[num_candidates:]


def clustered_blocks(
    counts: Sequence[int], *, dim: int, num_clusters: int, spread: float, seed: int
) -> Iterator[NDArray[np.float32]]:
    """Draw the same vectors block by block: those of the first count, then those of the next.

    Args:
        counts: Vectors of each part; no block spans two of them.
        dim: As for `make_clustered_vectors`, like all that follows.
        num_clusters: Centres.
        spread: Of a cluster.
        seed: Of the draws.

    Returns:
        Blocks [n, D], float32, n up to 65,536; each is overwritten by the next.
    """
    for name, value in (("dim", dim), ("num_clusters", num_clusters)):
        check_positive(name, value)
    rng = make_numpy_generator(seed, "clustered vectors")
    centres = rng.standard_normal((num_clusters, dim), dtype=np.float32)
    weights = 1.0 / np.arange(1, num_clusters + 1) ** 0.5
    cumulative = np.cumsum(weights) / weights.sum()
    made = np.empty((_ROWS_AT_ONCE, dim), np.float32)
    for count in counts:
        for start in range(0, count, _ROWS_AT_ONCE):
            part = made[: min(_ROWS_AT_ONCE, count - start)]
            clusters = np.searchsorted(cumulative, rng.random(len(part)) * cumulative[-1])
            rng.standard_normal(out=part, dtype=np.float32)
            part *= np.float32(spread)
            part += centres[np.minimum(clusters, num_clusters - 1)]
            part /= np.linalg.norm(part, axis=1, keepdims=True)
            yield part
