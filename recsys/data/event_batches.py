"""Batches of training positives, each with the history that it may see.

Dimensions: B rows in the batch, L events of history.
"""

import itertools

import numpy as np
from numpy.typing import NDArray

from recsys.data.events import Events
from recsys.data.history_ranges import HistoryRanges
from recsys.data.newest_values import NewestValues
from recsys.data.shuffled_rows import POOL_ROWS, ShuffledRows
from recsys.data.training_batch import NO_TIME, BatchStream, TrainingBatch
from recsys.foundations import ArgumentError, check_positive


class EventBatches:
    """Every training event, or every one of some, once an epoch, in an order by seed and epoch.

    A positive sees the events strictly before it in the user's order. Without any order it sees
    the user's other events; those of the same item are left out, unless repeats are the point.

    Args:
        events: The training part, sorted by user, then by order.
        clock: "time", "order" or "none", as the dataset states it.
        ties: "include": events of the same time stand in input order; "exclude": they do not see
            each other.
        history_length: L.
        batch_size: B; the last batch of an epoch may be smaller.
        drop_last: Whether that smaller batch is left out.
        seed: Of the order.
        positives: [P], int64, positions of the events that are positives; the others stand in
            histories alone. None: all are.
        with_times: Whether batches tell when the items of the histories were met, given a clock.
        repeats: Whether users are to be given again what they had. A history without an order then
            holds the positive's item where the user has it more than once, as it will in use.
        shuffle_rows: The most rows that are shuffled at a time; see `ShuffledRows`.

    Raises:
        ArgumentError: `batch_size` is not above 0, or a position is out of range.
    """

    def __init__(
        self,
        events: Events,
        *,
        clock: str,
        ties: str,
        history_length: int,
        batch_size: int,
        drop_last: bool,
        seed: int,
        positives: NDArray[np.int64] | None = None,
        with_times: bool = False,
        repeats: bool = False,
        shuffle_rows: int = POOL_ROWS,
    ) -> None:
        check_positive("batch_size", batch_size)
        _check_positions(positives, len(events))
        self._events, self._positives, self._repeats = events, positives, repeats
        self._length, self._batch_size, self._drop_last = history_length, batch_size, drop_last
        self._order = ShuffledRows(self._count_rows(), pool_rows=shuffle_rows, seed=seed)
        self._ordered = clock != "none"
        self._ranges = HistoryRanges(events, clock=clock, ties=ties)
        self._items = NewestValues(events.items, width=history_length, padding=-1)
        times = events.timestamps if with_times and clock == "time" else None
        self._times = (
            None if times is None else NewestValues(times, width=history_length, padding=NO_TIME)
        )

    def _count_rows(self) -> int:
        return len(self._events if self._positives is None else self._positives)

    @property
    def num_rows(self) -> int:
        """Count the rows that an epoch visits."""
        rows = self._count_rows()
        return rows - rows % self._batch_size if self._drop_last else rows

    def count_batches(self, epochs: int) -> int:
        """Count the batches of so many epochs."""
        return epochs * -(-self.num_rows // self._batch_size)

    def epoch(self, epoch: int, *, first_batch: int = 0) -> BatchStream:
        """Yield the batches of an epoch from `first_batch` on; the same ones every time."""
        batches = self._order.batches(epoch, self._batch_size, first_batch=first_batch)
        for rows in itertools.islice(batches, max(self.count_batches(1) - first_batch, 0)):
            yield self._take(rows if self._positives is None else self._positives[rows])

    def _take(self, rows: NDArray[np.int64]) -> TrainingBatch:
        events = self._events
        histories, times = self._earlier(rows) if self._ordered else (self._others(rows), None)
        return TrainingBatch(
            users=events.users.take(rows).astype(np.int64),
            positives=events.items.take(rows).astype(np.int64),
            histories=histories,
            weights=None if events.weights is None else events.weights.take(rows),
            context=events.context.take(rows),
            times=times,
        )

    def _earlier(
        self, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        """Give the items before each row, newest first, and when they were met."""
        starts, ends = self._ranges.of(rows)
        times = None if self._times is None else self._times.take(ends, ends - starts)
        return self._items.take(ends, ends - starts), times

    def _others(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the items that follow in the user's list, round its end, up to the row itself."""
        starts, stops = self._ranges.of(rows)
        starts, sizes = starts[:, None], (stops - starts)[:, None]
        steps = np.arange(1, self._length + 1)
        positions = starts + (rows[:, None] - starts + steps) % sizes  # [B, L]
        items = self._events.items.take(positions).astype(np.int64)
        hidden = steps >= sizes
        if not self._repeats:
            hidden |= items == self._events.items.take(rows)[:, None]
        np.copyto(items, -1, where=hidden)
        return items


def _check_positions(positions: NDArray[np.int64] | None, num_events: int) -> None:
    if positions is None or not len(positions):
        return
    if not 0 <= positions.min() <= positions.max() < num_events:
        raise ArgumentError(
            f"`positives` must hold positions from 0 to {num_events - 1}, got "
            f"{positions.min()} to {positions.max()}."
        )
