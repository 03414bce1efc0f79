"""What reads a history of items: the common call of all encoders.

Dimensions: Q queries, R histories of L items, M interests, D embedding width.
"""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from recsys.foundations import ArgumentError


@dataclass(frozen=True)
class QueryPlaces:
    """Where in which history each query stands: it knows all but the newest items.

    Attributes:
        rows: [Q], int64, in [0, R), the query's history.
        skipped: [Q], int64, in [0, L], how many of its newest items the query does not know.
    """

    rows: Tensor
    skipped: Tensor


class ItemTable(Protocol):
    """The vectors of items, by row."""

    def __call__(self, rows: Tensor) -> Tensor:
        """Look rows up: any shape of int64 gives the same shape with [D] appended."""
        ...

    def bag(self, rows: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
        """Give the weighted sum of each bag of rows; see `EmbeddingTable.bag`."""
        ...


class HistoryEncoder(Protocol):
    """Turns histories into one vector a query, or into several: its interests.

    Attributes:
        length: Items of a history that are read, the newest ones.
        num_interests: M; with 1 a query is one vector.
        is_causal: Whether it takes places: many queries along one history, each of which knows
            nothing of the newer items.
        uses_times: Whether it reads when the items were met.
    """

    length: int
    num_interests: int
    is_causal: bool
    uses_times: bool

    def __call__(
        self,
        histories: Tensor,
        known: Tensor,
        table: ItemTable,
        *,
        times: Tensor | None = None,
        places: QueryPlaces | None = None,
    ) -> Tensor:
        """Encode histories.

        Args:
            histories: [R, L], int64, rows of `table`, newest first.
            known: [R, L], bool, which entries of `histories` are items that the table holds; the
                others (padding among them) are as if they were not there.
            table: The items' vectors.
            times: [R, L], int64, when each item was met, in µs, `NO_TIME` where that is not known;
                None: of no item.
            places: Where the queries stand; None: query q knows all of history q, and Q = R.

        Returns:
            [Q, D], with more interests than one [Q, M, D].

        Raises:
            ArgumentError: There are places, and the encoder is not causal.
        """
        ...


def refuse_places(places: QueryPlaces | None) -> None:
    """Check that there are none.

    Raises:
        ArgumentError: There are.
    """
    if places is not None:
        raise ArgumentError(
            "`places` must be None: only a gru or a transformer reads a history once for many "
            "queries along it."
        )
