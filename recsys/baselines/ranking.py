"""The best candidates of each query by given scores: score (falling), then row (rising).

Dimensions: B queries, N candidates, P pairs of a query and a candidate.
"""

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged


def top_of_pairs(
    queries: NDArray[np.int64],
    rows: NDArray[np.int64],
    scores: NDArray[np.float64],
    *,
    k: int,
    num_queries: int,
) -> Ragged:
    """Order scored pairs and cut each query's list at k.

    Args:
        queries: [P], in [0, num_queries).
        rows: [P]; distinct within a query.
        scores: [P].
        k: At least 1.
        num_queries: B.

    Returns:
        B lists of rows; shorter than k where fewer pairs are given.
    """
    order = np.lexsort((rows, -scores, queries))
    counts = np.bincount(queries, minlength=num_queries)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    kept = order[np.arange(len(order)) - starts < k]
    offsets = np.concatenate([[0], np.cumsum(np.minimum(counts, k))]).astype(np.int64)
    return Ragged(offsets, rows[kept])


def top_of_matrix(scores: NDArray[np.float64], k: int) -> Ragged:
    """Give the k best columns of each row of [B, N]; -inf marks what may not be given.

    Returns:
        B lists of columns; shorter than k where fewer may be given.
    """
    num_queries, num_columns = scores.shape
    if k < num_columns:
        kth = np.partition(scores, num_columns - k, axis=1)[:, num_columns - k, None]
        queries, rows = np.nonzero((scores >= kth) & (scores > -np.inf))
    else:
        queries, rows = np.nonzero(scores > -np.inf)
    return top_of_pairs(queries, rows, scores[queries, rows], k=k, num_queries=num_queries)
