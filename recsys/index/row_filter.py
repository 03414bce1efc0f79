"""Which candidates a query may get: the excluded and the allowed rows of a batch.

Dimensions: B queries, C candidates, P pairs of a query and a candidate.
"""

from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, Ragged, sorted_distinct
from recsys.index.hidden_rows import HiddenRows


class RowFilter:
    """The checked filters of B queries over C candidates.

    Args:
        num_queries: B.
        num_candidates: C.
        exclude: B lists, or None.
        allowed: One rising array, B lists, or None.
        hidden: Rows that no query may get, or None.

    Raises:
        ArgumentError: A list has the wrong length or a negative row, or ``allowed`` does not rise.
    """

    def __init__(
        self,
        num_queries: int,
        num_candidates: int,
        exclude: Ragged | None,
        allowed: NDArray[Any] | Ragged | None,
        hidden: HiddenRows | None = None,
    ) -> None:
        self._num_candidates = num_candidates
        self.exclude = _checked("exclude", exclude, num_queries)
        self.allowed_lists: Ragged | None = None  # one list a query
        self.allowed_rows: NDArray[np.int64] | None = None  # one array for all
        self.hidden: HiddenRows | None = None  # only where `allowed` is None
        if isinstance(allowed, Ragged):
            lists = _checked("allowed", allowed, num_queries)
            self.allowed_lists = lists if hidden is None else _without(lists, hidden)
        elif allowed is not None:
            self.allowed_rows = _checked_rising(allowed, num_candidates)
            if hidden is not None:
                self.allowed_rows = self.allowed_rows[~hidden.mask[self.allowed_rows]]
        elif hidden is not None and hidden.count:
            self.hidden, self.allowed_rows = hidden, hidden.shown_rows

    @cached_property
    def _excluded_keys(self) -> NDArray[np.int64]:
        return self._sorted_keys(self.exclude)

    def _sorted_keys(self, lists: Ragged) -> NDArray[np.int64]:
        """Give each (query, row) of the catalogue as one number, rising, distinct."""
        rows = lists.rows.astype(np.int64)
        keys = lists.owners() * self._num_candidates + rows
        return sorted_distinct(keys[rows < self._num_candidates])

    def excluded_counts(self) -> NDArray[np.int64]:
        """Count the excluded rows of each query, repeats included: [B]."""
        return self.exclude.lengths

    def allowed_share(self) -> float:
        """Give the share of the catalogue that all queries may get; 1 without filters for all."""
        return self.num_allowed / max(self._num_candidates, 1)

    @property
    def num_allowed(self) -> int:
        """Count the rows that all queries may get; C without filters for all."""
        if self.allowed_rows is not None:
            return len(self.allowed_rows)
        return self._num_candidates if self.hidden is None else self.hidden.num_shown

    @cached_property
    def allowed_bits(self) -> NDArray[np.uint8]:
        """Give what all queries may get, a bit a candidate, lowest first."""
        if self.hidden is not None:
            return self.hidden.shown_bits
        mask = np.full(self._num_candidates, self.allowed_rows is None)
        mask[self.allowed_rows] = True
        return np.packbits(mask, bitorder="little")

    def keep(self, queries: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which pairs of a query and a candidate may be given.

        Args:
            queries: [P], positions in the batch.
            rows: [P], in [0, C).

        Returns:
            [P].
        """
        kept = ~_contains(self._excluded_keys, queries * self._num_candidates + rows)
        if self.hidden is not None:
            kept &= ~self.hidden.mask[rows]
        elif self.allowed_rows is not None:
            kept &= _contains(self.allowed_rows, rows)
        return kept

    def excluded_among(
        self, queries: NDArray[np.int64], candidates: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Tell which candidates their query excludes.

        Args:
            queries: [B'], positions in the batch, rising.
            candidates: [B', F], from -1, below C, never falling in a line; of -1 the answer means
                nothing.

        Returns:
            [B', F].
        """
        all_of_them = len(queries) == len(self.exclude)
        lists = self.exclude if all_of_them else self.exclude.take(queries)
        rows = lists.rows.astype(np.int64)
        wanted = (lists.owners() * self._num_candidates + rows)[rows < self._num_candidates]
        starts = np.arange(len(queries)) * self._num_candidates
        keys = (candidates + starts[:, None]).ravel()  # never falling
        wanted.sort()  # neighbours are found faster
        places = np.searchsorted(keys, wanted)
        inside = places < len(keys)
        places, wanted = places[inside], wanted[inside]
        excluded = np.zeros(candidates.shape, np.bool_)
        excluded.ravel()[places[keys[places] == wanted]] = True
        return excluded

    def allowed_pairs(self, lists: Ragged) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Give the pairs of B allowed lists that are not excluded, by query, then row.

        Returns:
            Queries and rows, [P] each; no pair twice.
        """
        keys = self._sorted_keys(lists)
        keys = keys[~_contains(self._excluded_keys, keys)]
        return keys // self._num_candidates, keys % self._num_candidates

    def take(self, queries: NDArray[np.int64]) -> Self:
        """Make the filter of some of the queries, in the order given."""
        allowed: NDArray[np.int64] | Ragged | None = self.allowed_rows
        if self.hidden is not None:
            allowed = None
        if self.allowed_lists is not None:
            allowed = self.allowed_lists.take(queries)
        exclude = self.exclude.take(queries)
        return type(self)(len(queries), self._num_candidates, exclude, allowed, self.hidden)


def _checked(name: str, lists: Ragged | None, num_queries: int) -> Ragged:
    if lists is None:
        return Ragged.empty(num_queries)
    if len(lists) != num_queries:
        raise ArgumentError(f"`{name}` must hold {num_queries} lists, got {len(lists)}.")
    if len(lists.rows) and lists.rows.min() < 0:
        raise ArgumentError(f"`{name}` must hold rows from 0, got {lists.rows.min()}.")
    return lists


def _without(lists: Ragged, hidden: HiddenRows) -> Ragged:
    kept = lists.rows < len(hidden.mask)
    kept[kept] = ~hidden.mask[lists.rows[kept]]
    return Ragged.from_pairs(lists.owners()[kept], lists.rows[kept], len(lists))


def _checked_rising(rows: NDArray[Any], num_candidates: int) -> NDArray[np.int64]:
    if rows.ndim != 1 or (len(rows) > 1 and not np.all(rows[1:] > rows[:-1])):
        raise ArgumentError("`allowed` must be one array of rising rows, or one list a query.")
    if len(rows) and rows[0] < 0:
        raise ArgumentError(f"`allowed` must hold rows from 0, got {rows[0]}.")
    return rows[: np.searchsorted(rows, num_candidates)].astype(np.int64)


def _contains(rising: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.bool_]:
    if not len(rising):
        return np.zeros(len(values), np.bool_)
    places = np.minimum(np.searchsorted(rising, values), len(rising) - 1)
    return np.asarray(rising[places] == values)
