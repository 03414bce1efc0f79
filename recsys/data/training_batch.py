"""What one training step sees: queries, and the positives that they chose.

Dimensions: Q queries, P positives, R histories of L items.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recsys.data.features import FeatureTable

NO_TIME = np.iinfo(np.int64).min  # in place of a time that is not known


@dataclass(frozen=True)
class HistoryPlaces:
    """Where in which history each query stands: it knows all but the newest items.

    Attributes:
        rows: [Q], int64, in [0, R), the query's history.
        skipped: [Q], int64, in [0, L], how many of its newest items the query does not know.
    """

    rows: NDArray[np.int64]
    skipped: NDArray[np.int64]


@dataclass(frozen=True)
class TrainingBatch:
    """The queries of one step and their positives.

    Attributes:
        users: [Q], int64, rows of the user vocabulary.
        positives: [P], int64, rows of the item vocabulary.
        histories: [R, L], int64, item rows, newest first, -1 beyond the end.
        weights: [P], float32, or None where every positive counts alike.
        context: [Q] rows of context features.
        times: [R, L], int64, when each history item was met, in µs, `NO_TIME` beyond the end; None
            where nobody asks or there is no clock.
        query_rows: [P], int64, in [0, Q), the query that chose each positive; None: query p chose
            positive p, and Q = P.
        places: Where the queries stand in the histories; None: query q knows all of history q,
            and Q = R.
    """

    users: NDArray[np.int64]
    positives: NDArray[np.int64]
    histories: NDArray[np.int64]
    weights: NDArray[np.float32] | None
    context: FeatureTable
    times: NDArray[np.int64] | None = None
    query_rows: NDArray[np.int64] | None = None
    places: HistoryPlaces | None = None

    @property
    def positive_users(self) -> NDArray[np.int64]:
        """Give the user of each positive: [P]."""
        return self.users if self.query_rows is None else self.users[self.query_rows]

    @property
    def is_grouped(self) -> bool:
        """Say whether several positives of a user stand in the batch because they are the user's.

        They then are no draws from among all training events.
        """
        return self.query_rows is not None or self.places is not None

    def newest_items(self) -> NDArray[np.int64]:
        """Give the newest item that each query knows, -1 where it knows none: [Q], int64."""
        if self.histories.shape[1] == 0:
            return np.full(len(self.users), -1)
        if self.places is None:
            return self.histories[:, 0].copy()
        ended = np.pad(self.histories, [(0, 0), (0, 1)], constant_values=-1)
        return ended[self.places.rows, self.places.skipped]

    def by_positive(self) -> Self:
        """Give the batch with a query of its own for each positive, so that Q = P."""
        return self if self.query_rows is None else self.with_queries(self.query_rows, None)

    def with_queries(
        self, queries: NDArray[np.int64], query_rows: NDArray[np.int64] | None
    ) -> Self:
        """Give the batch with other queries, each like one of its own.

        Args:
            queries: [n], int64, in [0, Q), which one each of the n is like.
            query_rows: [P], int64, in [0, n), the query that chose each positive; None: query p
                chose positive p, and n = P.
        """
        rows = queries if self.places is None else self.places.rows[queries]
        skipped = np.zeros_like(queries) if self.places is None else self.places.skipped[queries]
        return replace(
            self,
            users=self.users[queries],
            context=self.context.take(queries),
            query_rows=query_rows,
            places=HistoryPlaces(rows, skipped),
        )


BatchStream: TypeAlias = Generator[TrainingBatch, None, None]
"""Batches one after another; to be closed where not all are taken."""


class TrainingBatches(Protocol):
    """A source of batches: every training positive once an epoch, in an order by seed and epoch."""

    @property
    def num_rows(self) -> int:
        """Count the positives that an epoch visits."""
        ...

    def count_batches(self, epochs: int) -> int:
        """Count the batches of the first epochs."""
        ...

    def epoch(self, epoch: int, *, first_batch: int = 0) -> BatchStream:
        """Yield the batches of an epoch from `first_batch` on; the same ones every time."""
        ...
