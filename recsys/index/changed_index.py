"""A main index and what changed since, searched as one.

Dimensions: B queries, M interests of a query, N candidates of the main index, C with the added
ones, n changed rows, D embedding width, k results asked for.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged
from recsys.index.changed_index_delta import Delta
from recsys.index.changed_index_main import search_shown
from recsys.index.changed_index_vectors import ChangedVectors
from recsys.index.changes import Changes
from recsys.index.exact import ExactIndex
from recsys.index.hidden_rows import HiddenRows
from recsys.index.hits import Hits
from recsys.index.main_index import MainIndex
from recsys.index.scoring import check_search
from recsys.index.settings import IndexSettings


class ChangedIndex:
    """An index with changes: some vectors put in place of others, some added, some withdrawn.

    The main index is searched among the rows that did not change, the changed vectors are scored
    exactly, and the hits of both are merged: what is found is scored anew by both in the same way.

    Args:
        main: The index that was built.
        changes: What changed since.

    Raises:
        ShapeError: The changes have vectors of another width.
        ArgumentError: They are changes of another index.
    """

    def __init__(self, main: MainIndex, changes: Changes) -> None:
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
        self._dim = dim
        not_in_main = np.concatenate([changes.rows, changes.withdrawn])
        self._hidden = HiddenRows.of(not_in_main, main_count)
        self._delta = Delta(changes)

    def search(
        self,
        main: MainIndex | ExactIndex,
        query_vectors: NDArray[np.float32],
        k: int,
        exclude: Ragged | None,
        allowed: NDArray[Any] | Ragged | None,
    ) -> Hits:
        """Search both and merge."""
        queries = check_search(query_vectors, self._dim, k)
        hits = search_shown(main, queries, k, exclude=exclude, allowed=allowed, hidden=self._hidden)
        return self._delta.merge(hits, queries, k, exclude, allowed) if len(self._delta) else hits
