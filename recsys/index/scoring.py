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


def inner_products(asked: NDArray[np.float64], found: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute inner products over the last axis; the others are broadcast.

    Each is one call of BLAS's dot product, so that the order of its additions follows from D alone:
    the other pairs, their number and where they stand in memory play no part.

    Args:
        asked: [..., D], C-contiguous.
        found: [..., D], C-contiguous.
    """
    products = np.matmul(asked[..., None, :], found[..., :, None])  # [..., 1, 1]
    return np.asarray(products[..., 0, 0])


def take_rows(
    vectors: NDArray[np.float32], rows: NDArray[np.int64], out: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Copy some rows of the catalogue, and no more: ``out`` [n, D], which is returned.

    Args:
        vectors: [C, D]; may be a memory map.
        rows: [n], from -1, which gives some row.
        out: C-contiguous.
    """
    if vectors.flags.c_contiguous:
        # "clip" alone writes to `out` without a copy
        return np.take(vectors, rows, axis=0, out=out, mode="clip")
    out[:] = vectors[rows]  # `take` would first copy the whole catalogue
    return out


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
    asked = np.empty((step, num_interests, dim))
    found = np.empty((step, 1, dim))
    taken = np.empty((step, dim), np.float32)
    for start in range(0, len(rows), max(step, 1)):
        part = slice(start, min(start + step, len(rows)))
        size = part.stop - start
        asked[:size] = query_vectors[queries[part]]
        found[:size, 0] = take_rows(vectors, rows[part], taken[:size])
        scores[part] = inner_products(asked[:size], found[:size]).max(axis=1)
    scores += np.float32(0.0)  # -0 becomes 0: equal scores have equal bytes
    return scores


def sort_keys(scores: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Make one number of a score and a row, which rises by score (falling), then row (rising).

    Args:
        scores: [...], finite.
        rows: [...], from 0, below 2^32.
    """
    bits = (np.float32(0.0) - scores).view(np.int32)  # 0 - x: there is one zero
    return (_as_integers(bits).astype(np.int64) << 32) | rows


def rows_of_keys(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the rows that `sort_keys` was given."""
    return keys & 0xFFFF_FFFF


def scores_of_keys(keys: NDArray[np.int64]) -> NDArray[np.float32]:
    """Give the scores that `sort_keys` was given; of -0, 0."""
    bits = _as_integers((keys >> 32).astype(np.int32))
    return np.float32(0.0) - bits.view(np.float32)


def _as_integers(bits: NDArray[np.int32]) -> NDArray[np.int32]:
    """Make the bits of float32 rise as the numbers do; its own inverse."""
    return bits ^ ((bits >> 31) & 0x7FFF_FFFF)


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
    order = np.argsort(sort_keys(scores, rows))
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


def take_hits(hits: Hits, queries: NDArray[np.int64]) -> Hits:
    """Take the hits of some queries, in the order given."""
    lengths = hits.lengths[queries]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    places = np.arange(offsets[-1]) + np.repeat(hits.offsets[queries] - offsets[:-1], lengths)
    return Hits(offsets, hits.candidate_rows[places], hits.scores[places])
