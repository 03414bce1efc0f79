"""Fetched candidates of one interest a query, scored and ordered as one regular table.

Dimensions: B queries, F candidates fetched for each, C candidates, D embedding width, k results
asked for.
"""

import numpy as np
from numpy.typing import NDArray

from recsys.index.hits import Hits
from recsys.index.scoring import inner_products, rows_of_keys, scores_of_keys, sort_keys, take_rows

_NUMBERS_AT_ONCE = 1 << 16  # of vectors, which in float64 take 512 KiB of the second-level cache
_LAST = np.iinfo(np.int64).max  # behind the key of any score


def regular_hits(
    queries: NDArray[np.float32],
    vectors: NDArray[np.float32],
    candidates: NDArray[np.int64],
    k: int,
    dropped: NDArray[np.bool_] | None,
) -> Hits:
    """Score the candidates anew and give the best k of each query.

    The same, byte for byte, as `make_hits` gives of the scores of `score_pairs`, without a list of
    pairs: each query has a line of the table, and is sorted alone.

    Args:
        queries: [B, D].
        vectors: [C, D]; C at most 2^32.
        candidates: [B, F], in [0, C), distinct within a query; -1 where there is none.
        k: At least 1.
        dropped: [B, F], which may not be given; None: all may.
    """
    scores = _scores(queries, vectors, candidates)
    keys = sort_keys(scores, candidates)  # [B, F]
    if candidates.min(initial=0) < 0:
        missing = candidates < 0
        dropped = missing if dropped is None else dropped | missing
    if dropped is not None:
        keys[dropped] = _LAST
    keys.sort(axis=1)
    best = keys[:, :k]
    offsets = np.arange(len(best) + 1) * best.shape[1]
    given = best.ravel()
    if dropped is not None:
        lengths = np.minimum(dropped.shape[1] - dropped.sum(axis=1), k)
        np.cumsum(lengths, out=offsets[1:])
        given = given[given != _LAST]
    return Hits(offsets, rows_of_keys(given), scores_of_keys(given))


def _scores(
    queries: NDArray[np.float32], vectors: NDArray[np.float32], candidates: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Compute the scores of candidates [B, F]; of -1, that of some candidate."""
    (num_queries, fetched), dim = candidates.shape, queries.shape[1]
    scores = np.empty((num_queries, fetched), np.float32)
    asked = queries.astype(np.float64)[:, None]  # [B, 1, D]
    step = min(max(_NUMBERS_AT_ONCE // max(fetched * dim, 1), 1), max(num_queries, 1))
    taken = np.empty((step * fetched, dim), np.float32)
    found = np.empty((step, fetched, dim))
    for start in range(0, num_queries, step):
        part = slice(start, min(start + step, num_queries))
        size = part.stop - start
        numbers = take_rows(vectors, candidates[part].ravel(), taken[: size * fetched])
        found[:size] = numbers.reshape(size, fetched, dim)
        scores[part] = inner_products(asked[part], found[:size])
    return scores
