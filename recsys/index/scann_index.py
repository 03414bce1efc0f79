"""ScaNN finds the candidates; the stored vectors score and order them.

Dimensions: B queries, M interests of a query, C candidates, D embedding width, k results asked for,
F candidates fetched for an interest.
"""

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import (
    ArgumentError,
    map_in_threads,
    num_threads,
    sorted_distinct,
)
from recsys.index.approximate_index import ApproximateIndex
from recsys.index.exact import ExactIndex
from recsys.index.hits import Hits
from recsys.index.plan import plan_index
from recsys.index.rounding import check_score_range
from recsys.index.row_filter import RowFilter
from recsys.index.scann_library import build_searcher
from recsys.index.scoring import join_hits, make_hits, score_pairs
from recsys.index.settings import IndexSettings

_LARGEST_FETCH = 8_192  # beyond it, exact search is the faster way
_QUERIES_AT_ONCE = 256
_FEWEST_QUERIES = 32  # of a thread


class ScannIndex(ApproximateIndex):
    """An index of the package scann-core over vectors that are kept beside it.

    A tree of leaves around centroids, codes of 4 bits, and the vectors in two bytes a dimension, by
    which the best codes are ordered anew. What ScaNN proposes is scored from the stored vectors.
    Exact search answers where rows are allowed by a filter, and for queries whose leaves hold fewer
    than k candidates that may be given.

    Queries go to ScaNN one by one: it searches many at once in other orders, so that places which
    its approximate scores tie could differ.

    Args:
        vectors: [C, D], float32.
        searcher: ScaNN's index of these vectors, in their order.
        settings: Those it was built with.

    Raises:
        ArgumentError: The searcher holds another number of vectors.
    """

    kind = "scann"

    def __init__(
        self, vectors: NDArray[np.float32], searcher: Any, settings: IndexSettings
    ) -> None:
        super().__init__(ExactIndex(vectors), settings)
        if searcher.size() != len(vectors):
            raise ArgumentError(
                f"`searcher` must hold {len(vectors)} vectors, got {searcher.size()}."
            )
        self.searcher = searcher

    @classmethod
    def build(cls, vectors: NDArray[np.float32], settings: IndexSettings) -> Self:
        """Train ScaNN's index on the vectors.

        Args:
            vectors: [C, D], float32, finite; enough to train it, as `plan_index` says.
            settings: Of kind scann.

        Raises:
            ConfigError: The settings are impossible, or the package is not installed.
            ArgumentError: A vector is not finite.
        """
        ExactIndex(vectors)  # checks shape, type and values
        plan = plan_index(settings, num_candidates=len(vectors), dim=vectors.shape[1])
        return cls(vectors, build_searcher(vectors, plan), settings)

    def search_filtered(self, queries: NDArray[np.float32], k: int, rows: RowFilter) -> Hits:
        """Search; see `ApproximateIndex.search_filtered`."""
        filters = (rows.allowed_rows, rows.allowed_lists, rows.hidden)
        if any(one is not None for one in filters):
            return self._exact.search_filtered(queries, k, rows)
        check_score_range(queries, self._exact.largest_norm)
        step = -(-len(queries) // num_threads())
        step = min(max(step, _FEWEST_QUERIES), _QUERIES_AT_ONCE)
        blocks = [np.arange(s, min(s + step, len(queries))) for s in range(0, len(queries), step)]
        if not blocks:
            return self._exact.search_filtered(queries, k, rows)
        return join_hits(map_in_threads(partial(self._block, queries, k, rows), blocks))

    def _block(
        self, queries: NDArray[np.float32], k: int, rows: RowFilter, block: NDArray[np.int64]
    ) -> Hits:
        """Answer some of the queries, those that ScaNN leaves short by exact search."""
        part, rows = queries[block], rows.take(block)
        owners, fetched = self._fetch(part, k, rows)
        kept = rows.keep(owners, fetched)
        owners, fetched = owners[kept], fetched[kept]
        short = np.flatnonzero(np.bincount(owners, minlength=len(part)) < k)
        if len(short):
            whole = ~np.isin(owners, short)
            owners, fetched = owners[whole], fetched[whole]
        scores = score_pairs(part, self._exact.vectors, owners, fetched)
        if len(short):
            exact = self._exact.search_filtered(part[short], k, rows.take(short))
            owners = np.concatenate([owners, np.repeat(short, exact.lengths)])
            fetched = np.concatenate([fetched, exact.candidate_rows])
            scores = np.concatenate([scores, exact.scores])
        return make_hits(owners, fetched, scores, k=k, num_queries=len(part))

    def _fetch(
        self, queries: NDArray[np.float32], k: int, rows: RowFilter
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ask ScaNN for F candidates of each interest [B, M, D].

        F leaves room for what a query excludes, and for the places that two bytes confuse.

        Returns:
            Queries and rows, each pair once; none of a query for which ScaNN is not worth asking.
        """
        most = min(k, self.num_candidates)
        wanted = most + most // 4 + 1 + rows.excluded_counts()
        coded = np.minimum(wanted + most * (self.settings.overfetch - 1), self.num_candidates)
        leaves = -1 if self.settings.num_probes is None else self.settings.num_probes
        norms = np.linalg.norm(queries.astype(np.float64), axis=-1, keepdims=True)
        units = (queries / np.where(norms > 0, norms, 1.0)).astype(np.float32)
        owners, found = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for query in np.flatnonzero(wanted <= min(_LARGEST_FETCH, self.num_candidates)):
            for unit in units[query]:
                near, _ = self.searcher.search(unit, int(wanted[query]), int(coded[query]), leaves)
                found.append(near)
                owners.append(np.full(len(near), query))
        keys = np.concatenate(owners) * self.num_candidates + np.concatenate(found)
        if queries.shape[1] > 1:  # ScaNN gives no row twice
            keys = sorted_distinct(keys)
        return keys // self.num_candidates, keys % self.num_candidates
