"""A main index and what changed since, searched as one.

Dimensions: B queries, M interests of a query, N candidates of the main index, C with the added
ones, n changed rows, D embedding width, k results asked for.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged
from recsys.index.changed_index_vectors import ChangedVectors
from recsys.index.changes import Changes
from recsys.index.exact import ExactIndex
from recsys.index.faiss_index import FaissIndex
from recsys.index.hits import Hits
from recsys.index.row_filter import RowFilter
from recsys.index.scoring import check_search, make_hits
from recsys.index.settings import IndexSettings


class ChangedIndex:
    """A FAISS index with changes: some vectors put in place of others, some added, some withdrawn.

    The main index is searched among the rows that did not change, the changed vectors are scored
    exactly, and the hits of both are merged: what is found is scored anew by both in the same way.

    Args:
        main: The index that was built.
        changes: What changed since.

    Raises:
        ShapeError: The changes have vectors of another width.
        ArgumentError: They are changes of another index.
    """

    def __init__(self, main: FaissIndex, changes: Changes) -> None:
        changes.check_fits(main.num_candidates, main.dim)
        self.main, self.changes = main, changes
        self._segments = _Segments(main.num_candidates, main.dim, changes)

    @property
    def settings(self) -> IndexSettings:
        """Give those of the main index."""
        return self.main.settings

    @property
    def kind(self) -> str:
        """Give that of the main index."""
        return self.main.kind

    @property
    def num_candidates(self) -> int:
        """Give C; withdrawn rows count."""
        return self.changes.num_candidates

    @property
    def dim(self) -> int:
        """Give D."""
        return self.main.dim

    @cached_property
    def vectors(self) -> ChangedVectors:
        """Give the vectors [C, D] with the changes in place."""
        return ChangedVectors(self.main.exact.vectors, self.changes)

    @cached_property
    def exact(self) -> "ChangedExactIndex":
        """Give the exact index over the same candidates."""
        return ChangedExactIndex(self)

    def search(
        self,
        query_vectors: NDArray[np.float32],
        k: int,
        *,
        exclude: Ragged | None = None,
        allowed: NDArray[Any] | Ragged | None = None,
    ) -> Hits:
        """Find k candidates of large score; see `Index.search`. Withdrawn rows are not given."""
        return self._segments.search(self.main, query_vectors, k, exclude, allowed)


class ChangedExactIndex:
    """Every candidate of a changed index that is not withdrawn is scored.

    Args:
        changed: The index.
    """

    def __init__(self, changed: ChangedIndex) -> None:
        self._changed = changed

    @property
    def vectors(self) -> ChangedVectors:
        """Give the vectors [C, D] with the changes in place."""
        return self._changed.vectors

    @property
    def num_candidates(self) -> int:
        """Give C; withdrawn rows count."""
        return self._changed.num_candidates

    @property
    def dim(self) -> int:
        """Give D."""
        return self._changed.dim

    def search(
        self,
        query_vectors: NDArray[np.float32],
        k: int,
        *,
        exclude: Ragged | None = None,
        allowed: NDArray[Any] | Ragged | None = None,
    ) -> Hits:
        """Find the k candidates of largest score; see `Index.search`."""
        main, segments = self._changed.main.exact, self._changed._segments
        return segments.search(main, query_vectors, k, exclude, allowed)


class _Segments:
    """Where rows stand: in the main index, among the changed vectors, or nowhere."""

    def __init__(self, main_count: int, dim: int, changes: Changes) -> None:
        self._main_count, self._dim = main_count, dim
        self._num_candidates = changes.num_candidates
        given = ~_mask(changes.num_candidates, changes.withdrawn)
        self._delta = ExactIndex(changes.vectors)
        self._delta_rows = changes.rows
        self._delta_live = np.flatnonzero(given[changes.rows])
        self._places = np.full(changes.num_candidates, -1)  # [C], among the changed vectors
        self._places[changes.rows] = np.arange(len(changes.rows))
        in_main = given[:main_count] & ~_mask(changes.num_candidates, changes.rows)[:main_count]
        self._in_main = np.append(in_main, np.zeros(changes.num_candidates - main_count, np.bool_))
        self._main_live = np.flatnonzero(in_main)
        self._places[changes.withdrawn] = -1

    def search(
        self,
        main: FaissIndex | ExactIndex,
        query_vectors: NDArray[np.float32],
        k: int,
        exclude: Ragged | None,
        allowed: NDArray[Any] | Ragged | None,
    ) -> Hits:
        """Search both and merge."""
        queries = check_search(query_vectors, self._dim, k)
        rows = RowFilter(len(queries), self._num_candidates, exclude, allowed)
        found = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))]
        in_main = self._main_allowed(rows)
        if isinstance(in_main, Ragged) or len(in_main):
            hits = main.search(queries, k, exclude=rows.exclude, allowed=in_main)
            found.append((hits.lists.owners(), hits.candidate_rows, hits.scores))
        in_delta = self._delta_allowed(rows)
        if isinstance(in_delta, Ragged) or len(in_delta):
            excluded = self._to_places(rows.exclude)
            hits = self._delta.search(queries, k, exclude=excluded, allowed=in_delta)
            given = self._delta_rows[hits.candidate_rows]
            found.append((hits.lists.owners(), given, hits.scores))
        owners, given, scores = (np.concatenate(part) for part in zip(*found, strict=True))
        return make_hits(owners, given, scores, k=k, num_queries=len(queries))

    def _main_allowed(self, rows: RowFilter) -> NDArray[np.int64] | Ragged:
        if rows.allowed_lists is not None:
            lists = rows.allowed_lists
            inside = lists.rows < self._num_candidates
            inside[inside] = self._in_main[lists.rows[inside]]
            return Ragged.from_pairs(lists.owners()[inside], lists.rows[inside], len(lists))
        if rows.allowed_rows is not None:
            return np.asarray(rows.allowed_rows[self._in_main[rows.allowed_rows]])
        return self._main_live

    def _delta_allowed(self, rows: RowFilter) -> NDArray[np.int64] | Ragged:
        if rows.allowed_lists is not None:
            return self._to_places(rows.allowed_lists)
        if rows.allowed_rows is not None:
            places = self._places[rows.allowed_rows]
            return places[places >= 0]
        return self._delta_live

    def _to_places(self, lists: Ragged) -> Ragged:
        inside = lists.rows < self._num_candidates
        places = np.full(len(lists.rows), -1)
        places[inside] = self._places[lists.rows[inside]]
        there = places >= 0
        return Ragged.from_pairs(lists.owners()[there], places[there], len(lists))


def _mask(count: int, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    mask = np.zeros(count, np.bool_)
    mask[rows] = True
    return mask
