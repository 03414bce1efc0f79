"""Search by a score that gives the query's own items a bonus, exact over any index.

Dimensions: B queries, C candidates, P pairs of a query and a candidate, k results asked for.
"""

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, Ragged, check_shape, is_among
from recsys.index.hits import Hits
from recsys.index.scoring import join_hits, make_hits, order_pairs

_QUERIES_AT_ONCE = 256  # a query may have thousands of own items


class Search(Protocol):
    """The search of an `Index`, or of a popularity dial whose alpha is set."""

    def __call__(
        self,
        query_vectors: NDArray[np.float32],
        k: int,
        *,
        exclude: Ragged | None = None,
        allowed: NDArray[Any] | Ragged | None = None,
    ) -> Hits:
        """Find the k candidates of largest score; see `Index.search`."""
        ...


@dataclass(frozen=True)
class OwnItems:
    """What B queries had before, and what that adds to the scores.

    Attributes:
        rows: B lists of rows, distinct and rising within a list. One beyond the catalogue is no
            candidate and gets nothing.
        bonus: [P], float64, one for each of those rows; at least 0.

    Raises:
        ShapeError: There is not one bonus a row.
        ArgumentError: One is below 0 or not finite, or a list does not rise.
    """

    rows: Ragged
    bonus: NDArray[np.float64]

    def __post_init__(self) -> None:
        check_shape("bonus", self.bonus, len(self.rows.rows))
        _check_rising(self.rows)
        if not ((self.bonus >= 0) & (self.bonus < np.inf)).all():
            raise ArgumentError("`bonus` must hold finite numbers of at least 0.")

    def slice(self, start: int, stop: int) -> "OwnItems":
        """Take the queries from start to before stop."""
        stop = min(stop, len(self.rows))
        first, last = self.rows.offsets[start], self.rows.offsets[stop]
        return OwnItems(self.rows.slice(start, stop), self.bonus[first:last])


@dataclass(frozen=True)
class ScoredCandidates:
    """All that may stand among the k best of B queries, whatever the bonus of their own items.

    A bonus is never negative and lifts own items alone. So the k best with it are among the k best
    without it and the own items.

    Attributes:
        queries: [P], never falling.
        rows: [P], rising within a query.
        scores: [P], float32, without the bonus.
        places: [P], where among the own items the pair stands; -1: it is none.
        num_queries: B.
        k: Results asked for.
    """

    queries: NDArray[np.int64]
    rows: NDArray[np.int64]
    scores: NDArray[np.float32]
    places: NDArray[np.int64]
    num_queries: int
    k: int

    @classmethod
    def find(
        cls,
        search: Search,
        query_vectors: NDArray[np.float32],
        k: int,
        own_rows: Ragged,
        *,
        exclude: Ragged | None = None,
        allowed: NDArray[Any] | Ragged | None = None,
    ) -> Self:
        """Search for the k best without a bonus, and score every own item; see `search_with_bonus`.

        Args:
            search: Scores all rows of `allowed` where there is a list for each query, as every
                index does.
            query_vectors: [B, D] or [B, M, D].
            k: At least 1.
            own_rows: As in `OwnItems`.
            exclude: As for `Index.search`.
            allowed: As for `Index.search`.
        """
        hits = search(query_vectors, k, exclude=exclude, allowed=allowed)
        longest = max(int(own_rows.lengths.max(initial=0)), 1)
        may = _intersection(own_rows, allowed)
        own = search(query_vectors, longest, exclude=exclude, allowed=may)
        width = 1 + max(int(hits.candidate_rows.max(initial=0)), int(own_rows.rows.max(initial=0)))
        found = np.concatenate(
            [some.lists.owners() * width + some.lists.rows for some in (own, hits)]
        )
        keys, first = np.unique(found, return_index=True)
        own_keys = own_rows.owners() * width + own_rows.rows
        places = np.minimum(np.searchsorted(own_keys, keys), len(own_keys) - 1)
        return cls(
            queries=keys // width,
            rows=keys % width,
            scores=np.concatenate([own.scores, hits.scores])[first],
            places=np.where(own_keys[places] == keys, places, -1) if len(own_keys) else places,
            num_queries=len(hits),
            k=k,
        )

    def scores_with(self, bonus: NDArray[np.float64]) -> NDArray[np.float32]:
        """Give the scores [P] with a bonus for each own item, as `OwnItems` has it."""
        added = np.append(bonus, 0.0)[self.places]  # place -1: the last
        return np.asarray(self.scores + added, np.float32)

    def order(self, scores: NDArray[np.float32]) -> NDArray[np.int64]:
        """Find the k best pairs of each query: positions, by query, then score, then row."""
        return order_pairs(self.queries, self.rows, scores, self.k)

    def top(self, bonus: NDArray[np.float64]) -> Hits:
        """Give the k best with a bonus for each own item, as `OwnItems` has it."""
        scores, num_queries = self.scores_with(bonus), self.num_queries
        return make_hits(self.queries, self.rows, scores, k=self.k, num_queries=num_queries)


def search_with_bonus(
    search: Search,
    query_vectors: NDArray[np.float32],
    k: int,
    own: OwnItems | None,
    *,
    exclude: Ragged | None = None,
    allowed: NDArray[Any] | Ragged | None = None,
) -> Hits:
    """Find the k candidates of largest score, where own items get a bonus.

    The score of an own item is the one that the search gives it, plus its bonus; rounded to float32
    once more. The answer is as exact as the search: an own item is scored whether or not the search
    alone would have found it. Costs a score for each own item beside the search.

    Args:
        search: As for `ScoredCandidates.find`.
        query_vectors: [B, D] or [B, M, D], float32, finite.
        k: At least 1.
        own: Own items of the B queries; None: nobody has a bonus.
        exclude: As for `Index.search`; an own item among them is not given.
        allowed: As for `Index.search`; an own item that is not among them is not given.

    Returns:
        The hits, with the scores after the bonus. They do not depend on how queries are batched.

    Raises:
        ArgumentError: There is not one list of own items a query; or as for `Index.search`.
        ShapeError: As for `Index.search`.
    """
    if own is None:
        return search(query_vectors, k, exclude=exclude, allowed=allowed)
    num_queries = len(query_vectors)
    if len(own.rows) != num_queries:
        raise ArgumentError(f"`own` must hold {num_queries} lists, got {len(own.rows)}.")
    parts = []
    for start in range(0, max(num_queries, 1), _QUERIES_AT_ONCE):
        stop = start + _QUERIES_AT_ONCE
        some = own.slice(start, stop)
        found = ScoredCandidates.find(
            search,
            query_vectors[start:stop],
            k,
            some.rows,
            exclude=None if exclude is None else exclude.slice(start, stop),
            allowed=allowed.slice(start, stop) if isinstance(allowed, Ragged) else allowed,
        )
        parts.append(found.top(some.bonus))
    return join_hits(parts)


def _check_rising(rows: Ragged) -> None:
    if len(rows.rows) and rows.rows.min() < 0:
        raise ArgumentError(f"`rows` must hold rows from 0, got {rows.rows.min()}.")
    same = np.diff(rows.owners()) == 0
    if not (np.diff(rows.rows)[same] > 0).all():
        raise ArgumentError("`rows` must hold lists of rising rows.")


def _intersection(own: Ragged, allowed: NDArray[Any] | Ragged | None) -> Ragged:
    """Keep of the own items those that are allowed."""
    if allowed is None:
        return own
    owners = own.owners()
    if isinstance(allowed, Ragged):
        width = 1 + max(int(own.rows.max(initial=0)), int(allowed.rows.max(initial=0)))
        keys = allowed.owners() * width + allowed.rows.astype(np.int64)
        kept = is_among(owners * width + own.rows, keys)
    else:
        kept = is_among(own.rows, allowed)
    return Ragged.from_pairs(owners[kept], own.rows[kept], len(own))
