"""A main index and what changed since, searched as one.

Dimensions: B queries, M interests of a query, N candidates of the main index, C with the added
ones, n changed rows, D embedding width, k results asked for.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged, sorted_distinct
from recsys.index.changed_index_vectors import ChangedVectors
from recsys.index.changes import Changes
from recsys.index.exact import ExactIndex
from recsys.index.faiss_index import FaissIndex
from recsys.index.hidden_rows import HiddenRows
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
        self._dim, self._main_count, self._rows = dim, main_count, changes.rows
        not_in_main = sorted_distinct(np.concatenate([changes.rows, changes.withdrawn]))
        self._main_hidden = HiddenRows.of(not_in_main, main_count)
        self._delta = ExactIndex(changes.vectors)
        withdrawn, _ = self._places(changes.withdrawn)
        self._delta_hidden = HiddenRows.of(withdrawn, len(changes.rows))

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
        rows = RowFilter(len(queries), self._main_count, exclude, allowed, self._main_hidden)
        hits = main.search_filtered(queries, k, rows)
        if not len(self._rows):
            return hits
        rows = RowFilter(
            len(queries),
            len(self._rows),
            None if exclude is None else self._lists_of_places(exclude),
            self._allowed_places(allowed),
            self._delta_hidden,
        )
        changed = self._delta.search_filtered(queries, k, rows)
        return make_hits(
            np.concatenate([hits.lists.owners(), changed.lists.owners()]),
            np.concatenate([hits.candidate_rows, self._rows[changed.candidate_rows]]),
            np.concatenate([hits.scores, changed.scores]),
            k=k,
            num_queries=len(queries),
        )

    def _allowed_places(
        self, allowed: NDArray[Any] | Ragged | None
    ) -> NDArray[np.int64] | Ragged | None:
        if allowed is None:
            return None
        if isinstance(allowed, Ragged):
            return self._lists_of_places(allowed)
        return self._places(allowed)[0]

    def _lists_of_places(self, lists: Ragged) -> Ragged:
        places, there = self._places(lists.rows)
        return Ragged.from_pairs(lists.owners()[there], places, len(lists))

    def _places(self, rows: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Give the places among the changed vectors of those rows that stand there, and which."""
        places = np.searchsorted(self._rows, rows)
        there = np.append(self._rows, -1)[places] == rows
        return places[there], there
