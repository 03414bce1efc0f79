"""Exact search: one blocked product, a floor a query, and the few that reach it scored anew.

Dimensions: B queries, M interests of a query, C candidates, D embedding width, k results asked for.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, Ragged, check_shape, map_in_threads, num_threads
from recsys.index.hits import Hits
from recsys.index.rounding import RoundingBound, norms_of
from recsys.index.row_filter import RowFilter
from recsys.index.running_best import RunningBest
from recsys.index.scored_blocks import scored_blocks
from recsys.index.scoring import check_finite, check_search, join_hits, make_hits, score_pairs

_QUERIES_AT_ONCE = 512
_VECTORS_AT_ONCE = 2048  # M of each query
_RESULTS_AT_ONCE = 1 << 17
_PAIRS_AT_ONCE = 1 << 18
_SCORES_WORTH_THREADS = 1 << 22  # some milliseconds


class ExactIndex:
    """Every candidate is scored; the answer is the true one.

    Queries are searched in blocks, in as many threads as `set_threads` says. Beside the result a
    thread takes about 15 MB, 80 MB where equal scores, or one vector a thousand times longer than
    the others, ask for float64.

    Args:
        vectors: [C, D], float32, finite; kept, not copied (a memory map will do).

    Attributes:
        vectors: As given.
        norms: [C], float32; their lengths, rounded up.
        largest_norm: The largest of them; 0 without candidates.

    Raises:
        ShapeError: The vectors are not [C, D].
        ArgumentError: They are not float32, not finite, or longer than float32 can say.
    """

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        check_shape("vectors", vectors, None, None)
        if vectors.dtype != np.float32:
            raise ArgumentError(f"`vectors` must be float32, got {vectors.dtype}.")
        self.vectors, self.norms = vectors, norms_of(vectors)
        self.largest_norm = float(self.norms.max(initial=0.0))
        if not np.isfinite(self.largest_norm):
            check_finite("vectors", vectors)
            raise ArgumentError("`vectors` must have lengths within float32.")

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
        RoundingBound(query_vectors, self.largest_norm)  # refuses before the work begins

        def search_block(block: slice) -> Hits:
            queries = query_vectors[block]
            part = row_filter.take(np.arange(block.start, block.stop))
            if part.allowed_lists is None:
                return self._search_all(queries, k, part)
            owners, rows = part.allowed_pairs(part.allowed_lists)
            scores = score_pairs(queries, self.vectors, owners, rows)
            return make_hits(owners, rows, scores, k=k, num_queries=len(queries))

        threads = num_threads() if self._worth_threads(query_vectors) else 1
        blocks = _blocks(query_vectors, k, row_filter, threads)
        return join_hits(map_in_threads(search_block, blocks))

    def _worth_threads(self, queries: NDArray[np.float32]) -> bool:
        num_vectors = queries.shape[0] * queries.shape[1]
        return bool(num_vectors * self.num_candidates > _SCORES_WORTH_THREADS)

    def _search_all(self, queries: NDArray[np.float32], k: int, row_filter: RowFilter) -> Hits:
        bound = RoundingBound(queries, self.largest_norm)
        best = RunningBest(queries, self.vectors, bound, k)
        for block in scored_blocks(queries, self.vectors, self.norms, row_filter):
            best.add(block)
        return best.hits()


def _blocks(
    queries: NDArray[np.float32], k: int, row_filter: RowFilter, threads: int
) -> list[slice]:
    """Divide the queries, so that each thread has some and what a block holds is bounded."""
    num_queries, num_interests, _ = queries.shape
    most = min(_QUERIES_AT_ONCE, _VECTORS_AT_ONCE // num_interests, _RESULTS_AT_ONCE // k)
    if row_filter.allowed_lists is not None:
        longest = int(row_filter.allowed_lists.lengths.max(initial=1))
        most = min(most, _PAIRS_AT_ONCE // max(longest, 1))
    step = max(min(most, -(-num_queries // threads)), 1)
    return [slice(start, min(start + step, num_queries)) for start in range(0, num_queries, step)]
