"""The centroids that inverted lists gather around: k-means on a sample.

Dimensions: C candidates, D embedding width.
"""

from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from recsys.index.build_inner import TRAINING_PER_CENTROID

_faiss: Any = faiss  # its type stubs lack some of the names it has
_ROUNDS = 10  # of k-means, as FAISS's own lists take


def find_centroids(vectors: NDArray[np.float32], num_lists: int) -> NDArray[np.float32]:
    """Find centroids as FAISS does for an inner product, on at most 128 candidates a centroid.

    Args:
        vectors: [C, D], float32, finite; C at least `num_lists`.
        num_lists: At least 1.

    Returns:
        [num_lists, D], float32, of length 1, the same for the same vectors and threads.
    """
    most = TRAINING_PER_CENTROID * num_lists
    if len(vectors) > most:
        rows = np.random.default_rng(0).choice(len(vectors), most, replace=False)
        vectors = vectors[np.sort(rows)]
    means = _faiss.Kmeans(
        vectors.shape[1],
        num_lists,
        niter=_ROUNDS,
        spherical=True,
        max_points_per_centroid=TRAINING_PER_CENTROID,
        min_points_per_centroid=1,
    )
    means.train(np.ascontiguousarray(vectors))
    centroids: NDArray[np.float32] = means.centroids
    return centroids
