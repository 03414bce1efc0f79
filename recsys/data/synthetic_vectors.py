"""Made-up embeddings with clusters, and queries of the same distribution.

Dimensions: C candidates, Q queries, D embedding width.
"""

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
    for name, value in (("dim", dim), ("num_clusters", num_clusters)):
        check_positive(name, value)
    rng = make_numpy_generator(seed, "clustered vectors")
    centres = rng.standard_normal((num_clusters, dim), dtype=np.float32)
    weights = 1.0 / np.arange(1, num_clusters + 1) ** 0.5
    cumulative = np.cumsum(weights) / weights.sum()

    def draw(count: int) -> NDArray[np.float32]:
        made = np.empty((count, dim), np.float32)
        for start in range(0, count, _ROWS_AT_ONCE):
            part = made[start : start + _ROWS_AT_ONCE]
            clusters = np.searchsorted(cumulative, rng.random(len(part)) * cumulative[-1])
            rng.standard_normal(out=part, dtype=np.float32)
            part *= np.float32(spread)
            part += centres[np.minimum(clusters, num_clusters - 1)]
            part /= np.linalg.norm(part, axis=1, keepdims=True)
        return made

    return draw(num_candidates), draw(num_queries)
