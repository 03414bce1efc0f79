"""The changed vectors, searched exactly for what may stand among the hits of the main index.

Dimensions: B queries, M interests of a query, n changed rows, D embedding width, P pairs of a query
and a changed row, k results asked for.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged
from recsys.index.changes import Changes
from recsys.index.exact import ExactIndex
from recsys.index.hidden_rows import HiddenRows
from recsys.index.hits import Hits
from recsys.index.rounding import RoundingBound
from recsys.index.row_filter import RowFilter
from recsys.index.scoring import make_hits, score_pairs

_QUERIES_AT_ONCE = 256
_SCORES_AT_ONCE = 1 << 20  # 4 MiB
# Pairs of a query that are scored anew where they reach the floor: that many a result, and in any
# case that many; with more of them, exact search is faster.
_PAIRS_A_RESULT, _PAIRS_ANYHOW = 4, 1024


class _Found(NamedTuple):
    """P pairs, in any order: the query, its place among the changed rows, the score."""

    owners: NDArray[np.int64]
    places: NDArray[np.int64]
    scores: NDArray[np.float32]


class Delta:
    """The changed rows that are not withdrawn.

    Args:
        changes: Their rows and vectors.
    """

    def __init__(self, changes: Changes) -> None:
        self._rows = changes.rows
        self._exact = ExactIndex(changes.vectors)
        withdrawn, _ = self._places(changes.withdrawn)
        self._hidden = HiddenRows.of(withdrawn, len(changes.rows))

    def __len__(self) -> int:
        return len(self._rows)

    def merge(
        self,
        hits: Hits,
        queries: NDArray[np.float32],
        k: int,
        exclude: Ragged | None,
        allowed: NDArray[Any] | Ragged | None,
    ) -> Hits:
        """Put changed rows among the hits of the main index.

        Args:
            hits: B lists, without changed rows.
            queries: [B, M, D].
            k: As the hits were asked for.
            exclude: As for `Index.search`.
            allowed: As for `Index.search`.
        """
        rows = self._filter(len(queries), exclude, allowed)
        found = self._search(queries, k, rows, _floors(hits, k))
        if not any(len(part.owners) for part in found):
            return hits
        return make_hits(
            np.concatenate([hits.lists.owners(), *(part.owners for part in found)]),
            np.concatenate([hits.candidate_rows, *(self._rows[part.places] for part in found)]),
            np.concatenate([hits.scores, *(part.scores for part in found)]),
            k=k,
            num_queries=len(queries),
        )

    def _search(
        self, queries: NDArray[np.float32], k: int, rows: RowFilter, floors: NDArray[np.float32]
    ) -> list[_Found]:
        """Find what reaches the floors [B], and where there is none, the best k."""
        if rows.allowed_lists is not None:
            return [self._best(queries, k, rows, np.arange(len(queries)))]
        few = max(_PAIRS_A_RESULT * min(k, len(self)), _PAIRS_ANYHOW)
        found, left = [], [np.flatnonzero(np.isneginf(floors))]
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            block = slice(start, start + _QUERIES_AT_ONCE)
            owners, places, many = self._reaching(queries[block], rows, floors[block], few)
            owners += start
            kept = rows.keep(owners, places)
            owners, places = owners[kept], places[kept]
            scores = score_pairs(queries, self._exact.vectors, owners, places)
            found.append(_Found(owners, places, scores))
            left.append(many + start)
        return [*found, self._best(queries, k, rows, np.concatenate(left))]

    def _best(
        self, queries: NDArray[np.float32], k: int, rows: RowFilter, chosen: NDArray[np.int64]
    ) -> _Found:
        """Find the best k of some of the queries."""
        if not len(chosen):
            return _Found(chosen, chosen, np.zeros(0, np.float32))
        hits = self._exact.search_filtered(queries[chosen], k, rows.take(chosen))
        return _Found(np.repeat(chosen, hits.lengths), hits.candidate_rows, hits.scores)

    def _reaching(
        self,
        queries: NDArray[np.float32],
        rows: RowFilter,
        floors: NDArray[np.float32],
        few: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Find the pairs that may reach the floors, by float32 products and their rounding bound.

        Returns:
            Queries and places of the pairs, [P] each; the queries that have more than a few, of
            which no pair is given.
        """
        largest = self._exact.largest_norm
        lowest = floors - RoundingBound(queries, largest).of_norm(largest)
        lowest = np.nextafter(lowest.astype(np.float32), np.float32(-np.inf))
        lowest[np.isneginf(floors)] = np.inf
        num_queries, num_interests, dim = queries.shape
        flat = queries.swapaxes(0, 1).reshape(num_interests * num_queries, dim).T
        step = max(_SCORES_AT_ONCE // max(flat.shape[1], 1), 1)
        listed, total = rows.allowed_rows, np.zeros(num_queries, np.int64)
        owners, places = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for start in range(0, len(self) if listed is None else len(listed), step):
            part = slice(start, start + step) if listed is None else listed[start : start + step]
            products = self._exact.vectors[part] @ flat
            if num_interests > 1:
                products = products.reshape(-1, num_interests, num_queries).max(axis=1)
            columns, asked = np.divmod(np.flatnonzero(products >= lowest), num_queries)
            owners.append(asked)
            places.append(columns + start if listed is None else listed[start + columns])
            total += np.bincount(asked, minlength=num_queries)
            lowest[total > few] = np.inf
        many, asked = total > few, np.concatenate(owners)
        kept = ~many[asked]
        return asked[kept], np.concatenate(places)[kept], np.flatnonzero(many)

    def _filter(
        self, num_queries: int, exclude: Ragged | None, allowed: NDArray[Any] | Ragged | None
    ) -> RowFilter:
        """Map the filters of a search to places among the changed rows."""
        places: NDArray[np.int64] | Ragged | None = None
        if isinstance(allowed, Ragged):
            places = self._lists_of_places(allowed)
        elif allowed is not None:
            places = self._places(allowed)[0]
        excluded = None if exclude is None else self._lists_of_places(exclude)
        return RowFilter(num_queries, len(self), excluded, places, self._hidden)

    def _lists_of_places(self, lists: Ragged) -> Ragged:
        places, there = self._places(lists.rows)
        if not len(places):
            return Ragged.empty(len(lists))
        return Ragged.from_pairs(lists.owners()[there], places, len(lists))

    def _places(self, rows: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Give the places of those rows [R] that are changed ones, and which [R] are."""
        places = np.searchsorted(self._rows, rows)
        there = np.append(self._rows, -1)[places] == rows
        return places[there], there


def _floors(hits: Hits, k: int) -> NDArray[np.float32]:
    """Give the k-th score of each query, which its hits must reach; -inf where it has fewer."""
    floors = np.full(len(hits), -np.inf, np.float32)
    full = hits.lengths == k
    floors[full] = hits.scores[hits.offsets[1:][full] - 1]
    return floors
