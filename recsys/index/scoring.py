"""The one score of a pair, and the one order of hits; every index ends here.

Dimensions: B queries, M interests of a query, C candidates, D embedding width, P pairs of a query
and a candidate.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, ShapeError, check_shape
from recsys.index.hits import Hits

_NUMBERS_AT_ONCE = 1 << 17  # of the vectors that are multiplied; the copies stay in the cache


def check_search(query_vectors: NDArray[Any], dim: int, k: int) -> NDArray[np.float32]:
    """Check the arguments that every search shares, and give the queries as [B, M, D].

    Raises:
        ShapeError: The query vectors are neither [B, D] nor [B, M, D], or M is 0.
        ArgumentError: ``k`` is below 1, or a query is not finite.
    """
    if query_vectors.ndim == 3:
        check_shape("query_vectors", query_vectors, None, None, dim)
        if query_vectors.shape[1] == 0:
            raise ShapeError(
                f"`query_vectors` must hold at least one vector a query, got "
                f"{list(query_vectors.shape)}."
            )
    else:
        check_shape("query_vectors", query_vectors, None, dim)
    if query_vectors.dtype != np.float32:
        raise ArgumentError(f"`query_vectors` must be float32, got {query_vectors.dtype}.")
    if k < 1:
        raise ArgumentError(f"`k` must be at least 1, got {k}.")
    check_finite("query_vectors", query_vectors)
    return query_vectors if query_vectors.ndim == 3 else query_vectors[:, None]


def check_finite(name: str, vectors: NDArray[Any]) -> None:
    """Check that no value is NaN or infinite.

    Raises:
        ArgumentError: One is; the message names its row.
    """
    axes = tuple(range(1, vectors.ndim))
    sums = vectors.sum(axis=axes, dtype=np.float64)  # infinite or NaN where a value is
    if not np.isfinite(sums).all():
        row = int(np.flatnonzero(~np.isfinite(sums))[0])
        raise ArgumentError(f"`{name}` must be finite, row {row} is not.")


def score_pairs(
    query_vectors: NDArray[np.float32],
    vectors: NDArray[np.float32],
    queries: NDArray[np.integer],
    rows: NDArray[np.int64],
) -> NDArray[np.float32]:
    """Compute the score of each pair: the largest inner product of an interest and the candidate.

    Products of two float32 are exact in float64; a sum is taken over its own D products in a fixed
    order of additions, so that it does not depend on the other pairs.

    Args:
        query_vectors: [B, M, D].
        vectors: [C, D].
        queries: [P], in [0, B).
        rows: [P], in [0, C).

    Returns:
        [P], rounded to float32 at the end.
    """
    scores = np.empty(len(rows), np.float32)
    _, num_interests, dim = query_vectors.shape
    step = min(max(_NUMBERS_AT_ONCE // max(num_interests * dim, 1), 1), len(rows))
    asked = np.empty((step, num_interests, dim), np.float32)
    found = np.empty((step, 1, dim), np.float32)
    products = np.empty((step, num_interests, dim))
    for start in range(0, len(rows), max(step, 1)):
        part = slice(start, min(start + step, len(rows)))
        size = part.stop - start
        # "clip" alone writes to `out` without a copy; rows are never outside
        np.take(query_vectors, queries[part], axis=0, out=asked[:size], mode="clip")
        np.take(vectors, rows[part], axis=0, out=found[:size, 0], mode="clip")
        products[:size] = asked[:size]
        products[:size] *= found[:size]
        sums = products[:size].reshape(size * num_interests, dim).sum(axis=1)
        scores[part] = sums.reshape(-1, num_interests).max(axis=1)
    scores += np.float32(0.0)  # -0 becomes 0: equal scores have equal bytes
    return scores


def order_pairs(
    queries: NDArray[np.integer], rows: NDArray[np.int64], scores: NDArray[np.float32], k: int
) -> NDArray[np.int64]:
    """Find the best k pairs of each query: by query, then score (falling), then row (rising).

    Args:
        queries: [P], from 0.
        rows: [P], distinct within a query, from 0, below 2^32.
        scores: [P].
        k: At least 1.

    Returns:
        Positions of the pairs that stay, in that order.
    """
    bits = (np.float32(0.0) - scores).view(np.int32).astype(np.int64)  # 0 - x: there is one zero
    falling = np.where(bits < 0, -(2**31) - bits, bits)
    order = np.argsort((falling << 32) + rows)
    counts = np.bincount(queries)
    narrow = np.uint16 if len(counts) <= 2**16 else np.int64  # 16 bits are sorted by counting
    order = order[np.argsort(queries[order].astype(narrow), kind="stable")]
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    return order[np.arange(len(order)) - starts < k]


def make_hits(
    queries: NDArray[np.integer],
    rows: NDArray[np.int64],
    scores: NDArray[np.float32],
    *,
    k: int,
    num_queries: int,
) -> Hits:
    """Order pairs and cut each query's list at k.

    Args:
        queries: [P], in [0, B).
        rows: [P]; distinct within a query.
        scores: [P].
        k: The longest list.
        num_queries: B.
    """
    best = order_pairs(queries, rows, scores, k)
    counts = np.bincount(queries[best], minlength=num_queries)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Hits(offsets, rows[best], scores[best])


def join_hits(parts: list[Hits]) -> Hits:
    """Put the hits of consecutive blocks of queries behind one another."""
    lengths = [part.lengths for part in parts]
    return Hits(
        np.concatenate([[0], *lengths]).cumsum().astype(np.int64),
        np.concatenate([np.zeros(0, np.int64), *(part.candidate_rows for part in parts)]),
        np.concatenate([np.zeros(0, np.float32), *(part.scores for part in parts)]),
    )
