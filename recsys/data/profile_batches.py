"""Batches of users with all that they have in training.

Dimensions: Q users in the batch, P events of theirs, L events of the longest history.
"""

import itertools

import numpy as np
from numpy.typing import NDArray

from recsys.data.events import Events
from recsys.data.features import FeatureTable
from recsys.data.newest_values import NewestValues
from recsys.data.shuffled_rows import POOL_ROWS, ShuffledRows
from recsys.data.training_batch import NO_TIME, BatchStream, TrainingBatch
from recsys.data.user_ranges import UserRanges, join_ranges
from recsys.foundations import check_positive


class ProfileBatches:
    """Every user once an epoch, all training events of the user the positives of one query.

    The query knows the user's newest `history_length` events, those that it is to predict among
    them: the encoder's dropout hides a share of them. Context columns are those of one event, so
    that they are missing here.

    Args:
        events: The training part, sorted by user, and by order where there is one.
        clock: "time", "order" or "none", as the dataset states it.
        history_length: The most events of a history.
        batch_size: Q; the last batch of an epoch may be smaller.
        drop_last: Whether that smaller batch is left out.
        seed: Of the order.
        shuffle_rows: The most users that are shuffled at a time; see `ShuffledRows`.

    Raises:
        ArgumentError: A size is not above 0.
    """

    def __init__(
        self,
        events: Events,
        *,
        clock: str,
        history_length: int,
        batch_size: int,
        drop_last: bool,
        seed: int,
        shuffle_rows: int = POOL_ROWS,
    ) -> None:
        check_positive("batch_size", batch_size)
        check_positive("history_length", history_length)
        self._events, self._length = events, history_length
        self._batch_size, self._drop_last = batch_size, drop_last
        self._users = UserRanges.of(events)
        self._order = ShuffledRows(len(self._users.users), pool_rows=shuffle_rows, seed=seed)
        self._items = NewestValues(events.items, width=history_length, padding=-1)
        times = events.timestamps if clock == "time" else None
        self._times = (
            None if times is None else NewestValues(times, width=history_length, padding=NO_TIME)
        )

    @property
    def num_rows(self) -> int:
        """Count the positives of an epoch, those of a batch that is dropped among them."""
        return len(self._events)

    def count_batches(self, epochs: int) -> int:
        """Count the batches of so many epochs."""
        whole, rest = divmod(len(self._users.users), self._batch_size)
        return epochs * (whole + (rest > 0 and not self._drop_last))

    def epoch(self, epoch: int, *, first_batch: int = 0) -> BatchStream:
        """Yield the batches of an epoch from `first_batch` on; the same ones every time."""
        batches = self._order.batches(epoch, self._batch_size, first_batch=first_batch)
        for chosen in itertools.islice(batches, max(self.count_batches(1) - first_batch, 0)):
            yield self._take(chosen)

    def _take(self, chosen: NDArray[np.int64]) -> TrainingBatch:
        events, times = self._events, self._times
        starts, stops = self._users.starts[chosen], self._users.stops[chosen]
        sizes = stops - starts
        query_rows, positions = join_ranges(starts, stops)
        width = int(min(self._length, sizes.max()))
        return TrainingBatch(
            users=self._users.users[chosen],
            positives=events.items.take(positions).astype(np.int64),
            histories=self._items.take(stops, sizes, width),
            weights=None if events.weights is None else events.weights.take(positions),
            context=FeatureTable.missing(events.context.schema, len(chosen)),
            times=None if times is None else times.take(stops, sizes, width),
            query_rows=query_rows,
        )
