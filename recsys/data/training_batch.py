"""What one training step sees: queries, and the positives that they chose.

Dimensions: Q queries, P positives, R histories of L items.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recsys.data.features import FeatureTable


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
        times: [R, L], int64, when each history item was met, in µs; None without a clock.
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


class TrainingBatches(Protocol):
    """A source of batches: every training positive once an epoch, in an order by seed and epoch."""

    @property
    def num_rows(self) -> int:
        """Count the positives that an epoch visits."""
        ...

    @property
    def num_batches(self) -> int:
        """Count the batches of an epoch."""
        ...

    def epoch(self, epoch: int, *, first_batch: int = 0) -> Iterator[TrainingBatch]:
        """Yield the batches of an epoch from `first_batch` on; the same ones every time."""
        ...
