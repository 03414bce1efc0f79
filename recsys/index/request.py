"""One search through an approximate index, while its queries are settled one after another.

Dimensions: B queries, M interests of a query, D embedding width, k results asked for.
"""

import numpy as np
from numpy.typing import NDArray

from recsys.index.hits import Hits
from recsys.index.row_filter import RowFilter
from recsys.index.scoring import join_hits, take_hits


class Request:
    """What was asked, and the hits of the queries that are settled.

    Args:
        query_vectors: [B, M, D].
        k: At least 1.
        rows: Of these queries.
    """

    def __init__(self, query_vectors: NDArray[np.float32], k: int, rows: RowFilter) -> None:
        self.query_vectors, self.k, self.rows = query_vectors, k, rows
        self._settled: list[tuple[NDArray[np.int64], Hits]] = []  # queries and their hits

    def settle(
        self, queries: NDArray[np.int64], hits: Hits, done: NDArray[np.bool_] | None = None
    ) -> None:
        """Keep the hits of queries [B]; only of those that are done [B], if that is given."""
        if done is not None and not done.all():
            queries, hits = queries[done], take_hits(hits, np.flatnonzero(done))
        self._settled.append((queries, hits))

    def hits(self) -> Hits:
        """Give the hits of all queries, in the order of the queries."""
        if len(self._settled) == 1 and len(self._settled[0][0]) == len(self.query_vectors):
            return self._settled[0][1]
        queries = np.concatenate([np.zeros(0, np.int64), *(part for part, _ in self._settled)])
        hits = join_hits([part for _, part in self._settled])
        return hits if (queries[1:] > queries[:-1]).all() else take_hits(hits, np.argsort(queries))
