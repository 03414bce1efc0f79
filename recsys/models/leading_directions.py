"""Leading right singular vectors of a sparse matrix.

Dimensions: N rows, V columns, K vectors asked for, R of them found.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

_NEGLIGIBLE = 1e-6  # of the largest singular value: a direction of rounding


def leading_directions(matrix: csr_array, num_directions: int) -> NDArray[np.float64]:
    """Give the right singular vectors of the K largest singular values that are not 0.

    Memory grows with the number of entries, and with K times the smaller of N and V; the result is
    the same however often it is computed.

    Args:
        matrix: [N, V], float64.
        num_directions: K, at least 1.

    Returns:
        [V, R], float64, columns of length 1, the largest singular value first; R is at most K, and
        smaller where the rank is.
    """
    if num_directions < min(matrix.shape):
        start = np.random.default_rng(0).standard_normal(min(matrix.shape))
        _, values, vectors = svds(matrix, k=num_directions, v0=start, return_singular_vectors="vh")
        right = vectors.T
    else:  # one side is no larger than K
        values, right = _all_directions(matrix)
    order = np.argsort(-values, kind="stable")
    found = order[values[order] > _NEGLIGIBLE * values.max(initial=0.0)]
    directions: NDArray[np.float64] = right[:, found]
    return directions


def _all_directions(matrix: csr_array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give all min(N, V) singular values and right singular vectors, by the smaller Gram matrix."""
    if matrix.shape[1] <= matrix.shape[0]:
        squares, right = np.linalg.eigh((matrix.T @ matrix).toarray())
        return np.sqrt(np.maximum(squares, 0)), right
    squares, left = np.linalg.eigh((matrix @ matrix.T).toarray())
    values = np.sqrt(np.maximum(squares, 0))
    return values, (matrix.T @ left) / np.where(values > 0, values, 1)
