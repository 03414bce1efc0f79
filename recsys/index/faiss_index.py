"""FAISS finds the candidates; the stored vectors score, order and complete them.

Dimensions: B queries, M interests of a query, C candidates, D embedding width, k results asked for,
F candidates fetched for an interest.
"""

from typing import Any, Self

import faiss
import numpy as np
from numpy.typing import NDArray

from recsys.foundations import (
    ArgumentError,
    map_in_threads,
    num_threads,
    sorted_distinct,
    thread_bound,
)
from recsys.index.allowed_in_faiss import exact_is_better, search_parameters
from recsys.index.approximate_index import ApproximateIndex
from recsys.index.build_inner import build_inner, kind_of
from recsys.index.exact import ExactIndex
from recsys.index.hits import Hits
from recsys.index.nearest_lists import NearestLists, has_flat_centroids
from recsys.index.regular_hits import regular_hits
from recsys.index.request import Request
from recsys.index.rounding import RoundingBound, check_score_range
from recsys.index.row_filter import RowFilter
from recsys.index.scoring import check_search, make_hits, score_pairs
from recsys.index.settings import GRAPH_KINDS, LIST_KINDS, IndexSettings

_QUERY_VECTORS_AT_ONCE = 512
_REFINED_KINDS = ("ivf_pq", "ivf_pq_fast")  # whose codes are too coarse for the last places
_WORTH_A_THREAD = 64  # query vectors
_STEP = 4  # of the numbers of candidates that are fetched first
_LARGEST_FETCH = 8_192  # beyond it, exact search is the faster way
_MOST_FLAT_QUERIES = 8  # beyond it, exact search finds the same faster than a flat index


class FaissIndex(ApproximateIndex):
    """A FAISS index over vectors that are kept beside it.

    FAISS proposes candidates, for each interest of a query, among the rows that are allowed to all
    queries. Those that a query excludes are dropped, and more are fetched until k remain; where
    FAISS runs dry, or few rows are allowed, exact search answers. What remains is scored from the
    stored vectors, so that a flat index gives exactly what `ExactIndex` gives.

    Args:
        vectors: [C, D], float32.
        inner: The FAISS index of these vectors, in their order.
        settings: Those it was built with.
        exact: Exact search over the same vectors; None: it is made, which reads all of them.

    Raises:
        ArgumentError: The FAISS index holds another number, width or metric.
    """

    def __init__(
        self,
        vectors: NDArray[np.float32],
        inner: Any,
        settings: IndexSettings,
        *,
        exact: ExactIndex | None = None,
    ) -> None:
        super().__init__(ExactIndex(vectors) if exact is None else exact, settings)
        holds = (inner.ntotal, inner.d, inner.metric_type)
        if holds != (*vectors.shape, faiss.METRIC_INNER_PRODUCT):
            raise ArgumentError(
                f"`inner` must hold {vectors.shape[0]} vectors of width {vectors.shape[1]} under "
                f"the inner product, got {inner.ntotal} of width {inner.d}."
            )
        self.inner = inner
        self.kind = kind_of(inner)
        self._lists: NearestLists | None = None
        if self.kind in LIST_KINDS and has_flat_centroids(inner):
            self._lists = NearestLists(inner)

    @classmethod
    def build(
        cls,
        vectors: NDArray[np.float32],
        settings: IndexSettings,
        *,
        centroids: NDArray[np.float32] | None = None,
    ) -> Self:
        """Train FAISS's index on the vectors and add them.

        Args:
            vectors: [C, D], float32, finite, at least one.
            settings: What to build; see `plan_index` for what happens with too few vectors.
            centroids: [num_lists, D], float32; those of another index with lists over the same
                vectors, which then are not searched for again.

        Raises:
            ConfigError: The settings are impossible for this width.
            ArgumentError: There are no vectors, or one is not finite.
        """
        exact = ExactIndex(vectors)  # checks shape, type and values
        if not len(vectors):
            raise ArgumentError("`vectors` must hold at least one vector.")
        inner = build_inner(vectors, settings, centroids)
        return cls(vectors, inner, settings, exact=exact)

    @property
    def _breadth(self) -> int:
        """Give how far a search looks: places of a graph, or lists; 0 of a flat index."""
        if self.kind in GRAPH_KINDS:
            return self.settings.ef_search
        return (self.settings.num_probes or self.inner.nprobe) if self.kind in LIST_KINDS else 0

    def search_filtered(self, queries: NDArray[np.float32], k: int, rows: RowFilter) -> Hits:
        """Search; see `ApproximateIndex.search_filtered`."""
        few = exact_is_better(self.inner, self.kind, self._breadth, k, rows)
        many = self.kind == "flat" and len(queries) > _MOST_FLAT_QUERIES
        if few or many or rows.allowed_lists is not None:
            return self._exact.search_filtered(queries, k, rows)
        return self._search_inside(queries, k, rows)

    def search_inside(
        self, query_vectors: NDArray[np.float32], k: int, *, allowed: NDArray[Any]
    ) -> Hits:
        """Search through FAISS however few rows are allowed, to compare it with exact search.

        Args:
            query_vectors: As for `search`, like all that follows.
            k: At least 1.
            allowed: One rising array for all queries, not empty.
        """
        queries = check_search(query_vectors, self.dim, k)
        rows = RowFilter(len(queries), self.num_candidates, None, allowed)
        return self._search_inside(queries, k, rows)

    def _search_inside(self, queries: NDArray[np.float32], k: int, rows: RowFilter) -> Hits:
        check_score_range(queries, self._exact.largest_norm)
        request = Request(queries, k, rows)
        threads = min(num_threads(), queries.shape[0] * queries.shape[1] // _WORTH_A_THREAD)
        most = _QUERY_VECTORS_AT_ONCE // queries.shape[1]
        step = max(min(most, -(-len(queries) // max(threads, 1))), 1)
        blocks = [
            (fetch, same[start : start + step])
            for fetch, same in self._first_fetches(k, rows)
            for start in range(0, len(same), step)
        ]
        if threads <= 1 or len(blocks) == 1:  # FAISS may use threads
            for fetch, block in blocks:
                self._answer(request, block, fetch, thread_bound())
        else:
            map_in_threads(lambda part: self._answer(request, part[1], part[0], 1), blocks)
        return request.hits()

    def _first_fetches(self, k: int, rows: RowFilter) -> list[tuple[int, NDArray[np.int64]]]:
        """Choose F for each query, from the query's own filter alone.

        Where rows are excluded F has three significant bits, so that few different ones are
        searched apart.

        Returns:
            Each F, with the queries that begin with it, rising.
        """
        per_result = self.settings.overfetch if self.kind in _REFINED_KINDS else 1
        wanted = min(k, self.num_candidates) * per_result + 1
        plain = min(-(-wanted // _STEP) * _STEP, rows.num_allowed)
        if not len(rows.exclude.rows):
            return [(plain, np.arange(len(rows.exclude)))]
        more = wanted + rows.excluded_counts()  # [B]
        step = 1 << np.maximum(np.frexp(more)[1].astype(np.int64) - 3, 0)
        fetches = np.minimum(-(-more // step) * step, rows.num_allowed)
        fetches[more == wanted] = plain
        different = [fetches[0]] if (fetches == fetches[0]).all() else sorted_distinct(fetches)
        return [(int(fetch), np.flatnonzero(fetches == fetch)) for fetch in different]

    def _answer(
        self,
        request: Request,
        open_queries: NDArray[np.int64],
        fetch: int,
        threads: int | None,
    ) -> None:
        """Answer queries that begin with the same F; each widens until it has its k."""
        num_allowed = request.rows.num_allowed
        while len(open_queries) and fetch <= _LARGEST_FETCH:
            queries = request.query_vectors[open_queries]
            approximate, candidates = self._fetch(queries, fetch, request.rows, threads)
            hits = self._score(request, open_queries, candidates)
            done = hits.lengths == request.k
            dry = candidates[:, :, -1].max(axis=1) < 0  # FAISS knows no further candidate
            if fetch == num_allowed:
                done |= ~dry
            elif self.kind == "flat":
                done &= self._nothing_better(queries, hits, approximate[:, :, -1].max(axis=1))
            request.settle(open_queries, hits, done)
            if done.all():
                return
            self._answer_exactly(request, open_queries[dry & ~done])  # widening cannot help
            open_queries = open_queries[~done & ~dry]
            fetch = min(4 * fetch, num_allowed)
        self._answer_exactly(request, open_queries)

    def _answer_exactly(self, request: Request, queries: NDArray[np.int64]) -> None:
        if len(queries):
            hits = self._exact.search_filtered(
                request.query_vectors[queries], request.k, request.rows.take(queries)
            )
            request.settle(queries, hits)

    def _score(
        self, request: Request, open_queries: NDArray[np.int64], candidates: NDArray[np.int64]
    ) -> Hits:
        """Score the fetched candidates [B, M, F] that may be given; order and cut them at k."""
        if candidates.shape[1] == 1:
            lines, dropped = candidates[:, 0], None  # FAISS gives no row twice
            if len(request.rows.exclude.rows):
                lines = np.sort(lines, axis=1)
                dropped = request.rows.excluded_among(open_queries, lines)
            asked = request.query_vectors[open_queries, 0]
            return regular_hits(asked, self._exact.vectors, lines, request.k, dropped)
        owners, fetched = _distinct_pairs(candidates, self.num_candidates)
        kept = request.rows.keep(open_queries[owners], fetched)
        owners, fetched = owners[kept], fetched[kept]
        scores = score_pairs(
            request.query_vectors, self._exact.vectors, open_queries[owners], fetched
        )
        return make_hits(owners, fetched, scores, k=request.k, num_queries=len(open_queries))

    def _nothing_better(
        self, queries: NDArray[np.float32], hits: Hits, last: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        """Tell where no candidate beyond the fetched ones can stand among the hits: [B].

        Args:
            queries: [B, M, D].
            hits: Of the fetched candidates.
            last: [B], the largest approximate score of an interest's last fetched candidate.
        """
        largest = self._exact.largest_norm
        bounds = RoundingBound(queries, largest).of_norm(largest)
        kth = np.full(len(hits), -np.inf)
        some = hits.lengths > 0
        kth[some] = hits.scores[hits.offsets[1:][some] - 1]
        return np.asarray(kth > last + bounds)

    def _fetch(
        self, queries: NDArray[np.float32], fetch: int, rows: RowFilter, threads: int | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Ask FAISS for F candidates of each interest among the rows that all queries may get.

        FAISS is held to a number of threads in this thread of Python: servers search in several.

        Returns:
            Scores and rows, both [B, M, F], falling by score; row -1 where there is none.
        """
        if threads is None:
            threads = faiss.omp_get_max_threads()
        flat = queries.reshape(-1, self.dim)  # [B * M, D]
        params = search_parameters(self.inner, self.kind, self._breadth, fetch, rows)
        if self._lists is None:
            faiss.omp_set_num_threads(threads)
            found = self.inner.search(flat, fetch, params=params)
        else:
            nearest = self._lists.find(flat, params.nprobe)
            faiss.omp_set_num_threads(threads)  # BLAS held at one thread may have lowered it
            found = self._lists.search(flat, fetch, nearest, params)
        shape = (*queries.shape[:2], fetch)
        return found[0].reshape(shape), found[1].reshape(shape)


def _distinct_pairs(
    candidates: NDArray[np.int64], num_candidates: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the queries and rows of the candidates [B, M, F], each pair once; -1 is none."""
    owners, interests, columns = np.nonzero(candidates >= 0)
    rows = candidates[owners, interests, columns]
    keys = sorted_distinct(owners * num_candidates + rows)
    return keys // num_candidates, keys % num_candidates
