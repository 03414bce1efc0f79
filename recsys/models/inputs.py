"""What the user tower reads about a batch of queries.

Dimensions: B queries, L items in a history.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recsys.data import NO_TIME, FeatureTable, HistoryPlaces
from recsys.foundations import ArgumentError, Ragged, ShapeError, check_shape


@dataclass(frozen=True)
class QueryInputs:
    """A batch of queries.

    Attributes:
        user_rows: [B], int64; -1 or num_users and above: a user the model does not know.
        histories: [B, L], int64, item rows, newest first, -1 where there is none; L may be 0.
        features: B rows of the user features.
        context: B rows of the interaction's own columns.
        times: As `histories`, int64, when each item was met, in µs; `NO_TIME` where that is not
            known. None: of no item.
        places: Where the queries stand in the histories, which are then R and not B; None: each
            query knows all of its own history. Only a causal encoder takes places.
    """

    user_rows: NDArray[np.int64]
    histories: NDArray[np.int64]
    features: FeatureTable
    context: FeatureTable
    times: NDArray[np.int64] | None = None
    places: HistoryPlaces | None = None

    def __post_init__(self) -> None:
        """Check that all parts have B rows, and that places stand in the histories."""
        check_shape("user_rows", self.user_rows, None)
        check_shape("histories", self.histories, len(self) if self.places is None else None, None)
        if self.times is not None:
            check_shape("times", self.times, *self.histories.shape)
        if self.places is not None:
            check_shape("places.rows", self.places.rows, len(self))
            check_shape("places.skipped", self.places.skipped, len(self))
        for name, table in (("features", self.features), ("context", self.context)):
            if len(table) != len(self):
                raise ShapeError(f"`{name}` must have {len(self)} rows, got {len(table)}.")

    def __len__(self) -> int:
        return len(self.user_rows)

    def take(self, rows: NDArray[np.int64]) -> Self:
        """Take queries by position; -1 gives a query about which nothing is known.

        Raises:
            ArgumentError: The queries share histories: there are places.
        """
        self._refuse_places()
        absent = rows < 0
        times = self.times
        return type(self)(
            np.where(absent, -1, self.user_rows[rows]),
            np.where(absent[:, None], -1, self.histories[rows]),
            self.features.take(rows),
            self.context.take(rows),
            None if times is None else np.where(absent[:, None], NO_TIME, times[rows]),
        )

    def with_history_length(self, length: int) -> Self:
        """Cut histories to the newest `length` items, or pad them to as many.

        Raises:
            ArgumentError: The queries share histories: there are places.
        """
        self._refuse_places()
        times = None if self.times is None else _with_width(self.times, length, NO_TIME)
        return replace(self, histories=_with_width(self.histories, length, -1), times=times)

    def _refuse_places(self) -> None:
        if self.places is not None:
            raise ArgumentError("`places` must be None outside training: they share histories.")


def _with_width(values: NDArray[np.int64], width: int, filler: int) -> NDArray[np.int64]:
    """Cut or fill [B, L] up to [B, width]."""
    block = np.full((len(values), width), filler, dtype=np.int64)
    shared = min(width, values.shape[1])
    block[:, :shared] = values[:, :shared]
    return block


def pad_histories(histories: Ragged, length: int) -> NDArray[np.int64]:
    """Turn lists of item rows into one block.

    Args:
        histories: N lists, oldest first.
        length: L; of longer lists the newest L items are taken.

    Returns:
        [N, L], int64, newest first, -1 behind the end.
    """
    ages = np.arange(length)
    there = ages < histories.lengths[:, None]  # [N, L]
    padded = np.full(there.shape, -1, dtype=np.int64)
    positions: NDArray[Any] = histories.offsets[1:, None] - 1 - ages
    padded[there] = histories.rows[positions[there]]
    return padded
