"""The best candidates of each query by given scores: score (falling), then row (rising).

Dimensions: B queries, N candidates, P pairs of a query and a candidate.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged, is_among

Rows = NDArray[np.int64]
_SCORES_AT_ONCE = 1 << 24  # of queries and candidates; bounds the memory of a block


def top_of_pairs(
    queries: Rows,
    rows: Rows,
    scores: NDArray[np.float64],
    *,
    k: int,
    exclude: Ragged,
    allowed: Rows | None,
) -> Ragged:
    """Order scored pairs and cut each query's list at k.

    Args:
        queries: [P], in [0, B).
        rows: [P]; distinct within a query.
        scores: [P].
        k: At least 1.
        exclude: B lists of rows that a query must not get.
        allowed: Rising, the only rows that may be given; None: all.

    Returns:
        B lists of rows; shorter than k where fewer pairs are given.
    """
    width = 1 + int(max(rows.max(initial=0), exclude.rows.max(initial=0)))
    kept = ~is_among(queries * width + rows, exclude.owners() * width + exclude.rows)
    if allowed is not None:
        kept &= is_among(rows, allowed)
    return _cut(queries[kept], rows[kept], scores[kept], k=k, num_queries=len(exclude))


def top_of_scores(
    score: Callable[[Ragged], NDArray[np.floating]],
    histories: Ragged,
    *,
    k: int,
    exclude: Ragged,
    allowed: Rows | None,
    num_items: int,
) -> Ragged:
    """Score all candidates for blocks of histories and give the k best of each.

    Args:
        score: Gives [B, N] for B histories; -inf marks what nothing speaks for. What it gives is
            written to.
        histories: B lists of item rows in [0, N), oldest first; repeats stay.
        k: At least 1.
        exclude: B lists of rows that a query must not get.
        allowed: Rising, the only rows that may be given; None: all.
        num_items: N.

    Returns:
        B lists of rows; shorter than k where fewer may be given.
    """
    size = max(1, _SCORES_AT_ONCE // num_items)
    barred = np.zeros(0, np.int64)
    if allowed is not None:
        barred = np.setdiff1d(np.arange(num_items), allowed, assume_unique=True)
    owners, rows = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for start in range(0, len(histories), size):
        scores = score(histories.slice(start, start + size))  # [block, N]
        banned = exclude.slice(start, start + size)
        scores[banned.owners(), banned.rows] = -np.inf
        scores[:, barred] = -np.inf
        best = _top_of_matrix(scores, k)
        owners.append(best.owners() + start)
        rows.append(best.rows)
    return Ragged.from_pairs(np.concatenate(owners), np.concatenate(rows), len(histories))


def _top_of_matrix(scores: NDArray[np.floating], k: int) -> Ragged:
    num_queries, num_columns = scores.shape
    found = scores > -np.inf
    if k < num_columns:
        kth = np.partition(scores, num_columns - k, axis=1)[:, num_columns - k, None]
        found &= scores >= kth
        crowded = np.flatnonzero(found.sum(axis=1) > 2 * k)  # to sort all ties would take long
        ties = scores[crowded] == kth[crowded]
        room = k - (scores[crowded] > kth[crowded]).sum(axis=1, keepdims=True)
        found[crowded] &= ~ties | (np.cumsum(ties, axis=1) <= room)
    queries, rows = np.nonzero(found)
    return _cut(queries, rows, scores[queries, rows], k=k, num_queries=num_queries)


def _cut(
    queries: Rows, rows: Rows, scores: NDArray[np.floating], *, k: int, num_queries: int
) -> Ragged:
    order = np.lexsort((rows, -scores, queries))
    counts = np.bincount(queries, minlength=num_queries)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    kept = order[np.arange(len(order)) - starts < k]
    offsets = np.concatenate([[0], np.cumsum(np.minimum(counts, k))]).astype(np.int64)
    return Ragged(offsets, rows[kept])
