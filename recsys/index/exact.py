"""Exact search: one blocked product, a threshold a query, and the few survivors scored anew.

Dimensions: B queries, M interests of a query, C candidates, D embedding width, k results asked for.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, Ragged, check_shape
from recsys.index.hits import Hits
from recsys.index.row_filter import RowFilter
from recsys.index.scoring import (
    check_finite,
    check_search,
    join_hits,
    make_hits,
    order_pairs,
    rounding_bound,
    score_pairs,
)

_VECTORS_AT_ONCE = 256  # of queries, M for each
_CANDIDATES_AT_ONCE = 8192  # or 32 k, so that merging stays cheap beside the product
_FIRST_CANDIDATES = 2048  # or 4 k; finds the first thresholds
_GROUP = 64  # columns whose maximum is looked at first


class ExactIndex:
    """Every candidate is scored; the answer is the true one.

    Args:
        vectors: [C, D], float32, finite; kept, not copied (a memory map will do).

    Raises:
        ShapeError: The vectors are not [C, D].
        ArgumentError: They are not float32, or not finite.
    """

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        check_shape("vectors", vectors, None, None)
        if vectors.dtype != np.float32:
            raise ArgumentError(f"`vectors` must be float32, got {vectors.dtype}.")
        check_finite("vectors", vectors)
        self.vectors = vectors
        self.largest_norm = _largest_norm(vectors)

    @property
    def num_candidates(self) -> int:
        """Give C."""
        return len(self.vectors)

    @property
    def dim(self) -> int:
        """Give D."""
        return int(self.vectors.shape[1])

    def search(
        self,
        query_vectors: NDArray[np.float32],
        k: int,
        *,
        exclude: Ragged | None = None,
        allowed: NDArray[Any] | Ragged | None = None,
    ) -> Hits:
        """Find the k candidates of largest score; see `Index.search`."""
        queries = check_search(query_vectors, self.dim, k)
        rows = RowFilter(len(queries), self.num_candidates, exclude, allowed)
        return self.search_filtered(queries, k, rows)

    def search_filtered(
        self, query_vectors: NDArray[np.float32], k: int, row_filter: RowFilter
    ) -> Hits:
        """Search with arguments that are checked already; the query vectors are [B, M, D]."""
        bounds = rounding_bound(query_vectors, self.largest_norm)
        parts = []
        step = max(_VECTORS_AT_ONCE // query_vectors.shape[1], 1)
        for start in range(0, len(query_vectors), step):
            block = np.arange(start, min(start + step, len(query_vectors)))
            queries, part = query_vectors[block], row_filter.take(block)
            if part.allowed_lists is None:
                parts.append(_search_block(queries, self.vectors, bounds[block], k, part))
            else:
                owners, rows = part.allowed_pairs(part.allowed_lists)
                scores = score_pairs(queries, self.vectors, owners, rows)
                parts.append(make_hits(owners, rows, scores, k=k, num_queries=len(block)))
        return join_hits(parts)


def _largest_norm(vectors: NDArray[np.float32]) -> float:
    largest = 0.0
    for start in range(0, len(vectors), _CANDIDATES_AT_ONCE):
        part = np.square(vectors[start : start + _CANDIDATES_AT_ONCE], dtype=np.float64)
        largest = max(largest, float(part.sum(axis=1).max()))
    return float(np.sqrt(largest))


def _search_block(
    queries: NDArray[np.float32],
    vectors: NDArray[np.float32],
    bounds: NDArray[np.float64],
    k: int,
    row_filter: RowFilter,
) -> Hits:
    best = _Best(queries, vectors, bounds, k)
    allowed, exclude = row_filter.allowed_rows, row_filter.exclude
    by_row = np.argsort(exclude.rows, kind="stable")
    excluded_rows, excluded_queries = exclude.rows[by_row], exclude.owners()[by_row]
    num_columns = len(vectors) if allowed is None else len(allowed)
    start, size = 0, max(_FIRST_CANDIDATES, 4 * k)
    widest = min(max(_CANDIDATES_AT_ONCE, 32 * k), num_columns)
    num_queries, num_interests, dim = queries.shape
    flat = queries.reshape(-1, dim)  # [B * M, D]
    buffer = np.empty((len(flat), max(widest, min(size, num_columns))), np.float32)
    while start < num_columns:
        stop = min(start + size, num_columns)
        rows = np.arange(start, stop) if allowed is None else allowed[start:stop]
        chosen = vectors[start:stop] if allowed is None else vectors[rows]
        scores = np.matmul(flat, chosen.T, out=buffer[:, : stop - start])
        if num_interests > 1:
            scores = scores.reshape(num_queries, num_interests, -1).max(axis=1)  # [B, columns]
        low, high = np.searchsorted(excluded_rows, [rows[0], rows[-1] + 1])
        columns = np.searchsorted(rows, excluded_rows[low:high])
        there = rows[columns] == excluded_rows[low:high]
        scores[excluded_queries[low:high][there], columns[there]] = -np.inf
        best.add(scores, rows)
        start, size = stop, widest
    return make_hits(best.owners, best.rows, best.scores, k=k, num_queries=num_queries)


class _Best:
    """The true best k of each query among the candidates seen so far."""

    def __init__(
        self,
        queries: NDArray[np.float32],
        vectors: NDArray[np.float32],
        bounds: NDArray[np.float64],
        k: int,
    ) -> None:
        self._queries, self._vectors, self._bounds, self._k = queries, vectors, bounds, k
        self._kth = np.full(len(queries), -np.inf)  # [B], score of the k-th, if there is one
        self.owners = np.zeros(0, np.int64)
        self.rows = np.zeros(0, np.int64)
        self.scores = np.zeros(0, np.float32)

    def add(self, scores: NDArray[np.float32], rows: NDArray[np.int64]) -> None:
        """Take in a block of approximate scores [B, columns]; -inf marks what may not be given."""
        owners, columns = _at_least(scores, self._thresholds(scores))
        if not len(owners):
            return
        fresh = rows[columns]
        exact = score_pairs(self._queries, self._vectors, owners, fresh)
        owners = np.concatenate([self.owners, owners])
        fresh = np.concatenate([self.rows, fresh])
        exact = np.concatenate([self.scores, exact])
        kept = order_pairs(owners, fresh, exact, self._k)
        self.owners, self.rows, self.scores = owners[kept], fresh[kept], exact[kept]
        counts = np.bincount(self.owners, minlength=len(self._queries))
        full = counts == self._k
        self._kth[full] = self.scores[np.cumsum(counts)[full] - 1]

    def _thresholds(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Give the approximate score [B] below which nothing can be among the best k."""
        lowest = self._kth - self._bounds
        open_queries = np.flatnonzero(np.isneginf(self._kth))
        if len(open_queries) and scores.shape[1] >= self._k:
            place = scores.shape[1] - self._k
            kth = np.partition(scores[open_queries], place, axis=1)[:, place]
            lowest[open_queries] = kth - 2 * self._bounds[open_queries]
        return np.nextafter(lowest.astype(np.float32), np.float32(-np.inf))


def _at_least(
    scores: NDArray[np.float32], thresholds: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the finite entries at or above their row's threshold: query and column of each."""
    num_queries, num_columns = scores.shape
    groups = num_columns // _GROUP
    whole = groups * _GROUP
    folded = scores[:, :whole].reshape(num_queries, _GROUP, groups)  # group g: columns g + j * G
    promising = folded.max(axis=1, initial=-np.inf) >= thresholds[:, None]
    if 8 * promising.sum() > promising.size:  # most entries would be looked at twice
        queries, columns = np.nonzero((scores >= thresholds[:, None]) & (scores > -np.inf))
        return queries, columns
    owners, group = np.nonzero(promising)
    members = group[:, None] + groups * np.arange(_GROUP)  # [found groups, _GROUP]
    tail = np.broadcast_to(np.arange(whole, num_columns), (num_queries, num_columns - whole))
    queries = np.concatenate(
        [np.repeat(owners, _GROUP), np.repeat(np.arange(num_queries), num_columns - whole)]
    )
    columns = np.concatenate([members.ravel(), tail.ravel()])
    values = scores[queries, columns]
    found = (values >= thresholds[queries]) & (values > -np.inf)
    return queries[found], columns[found]
