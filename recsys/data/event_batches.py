"""Batches of training positives, each with the history that it may see.

Dimensions: B rows in the batch, L events of history.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from recsys.data.events import Events, history_ends
from recsys.data.training_batch import NO_TIME, TrainingBatch
from recsys.data.user_ranges import take_padded
from recsys.foundations import ArgumentError, check_positive, make_numpy_generator


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
    ) -> None:
        check_positive("batch_size", batch_size)
        self._positives = np.arange(len(events)) if positives is None else positives
        _check_positions(self._positives, len(events))
        self._events, self._ordered, self._seed = events, clock != "none", seed
        self._length, self._batch_size, self._drop_last = history_length, batch_size, drop_last
        self._times = events.timestamps if with_times and clock == "time" else None
        self._repeats = repeats
        num_users = int(events.users.max()) + 1 if len(events.users) else 0
        starts = np.searchsorted(events.users, np.arange(num_users + 1))
        self._starts, self._stops = starts[:-1], starts[1:]
        if self._ordered:
            self._ends = history_ends(events, clock=clock, ties=ties)

    @property
    def num_rows(self) -> int:
        """Count the rows that an epoch visits."""
        rows = len(self._positives)
        return rows - rows % self._batch_size if self._drop_last else rows

    def count_batches(self, epochs: int) -> int:
        """Count the batches of so many epochs."""
        return epochs * -(-self.num_rows // self._batch_size)

    def epoch(self, epoch: int, *, first_batch: int = 0) -> Iterator[TrainingBatch]:
        """Yield the batches of an epoch from `first_batch` on; the same ones every time."""
        generator = make_numpy_generator(self._seed, "batches", epoch)
        order = generator.permutation(self._positives)[: self.num_rows]
        for batch in range(first_batch, self.count_batches(1)):
            start = batch * self._batch_size
            yield self._take(order[start : start + self._batch_size])

    def _take(self, rows: NDArray[np.int64]) -> TrainingBatch:
        events = self._events
        positions = self._earlier(rows) if self._ordered else self._others(rows)  # [B, L]
        times = self._times
        return TrainingBatch(
            users=events.users[rows],
            positives=events.items[rows],
            histories=take_padded(events.items, positions, -1),
            weights=None if events.weights is None else events.weights[rows],
            context=events.context.take(rows),
            times=None if times is None else take_padded(times, positions, NO_TIME),
        )

    def _earlier(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the positions of the events before each row, newest first, -1 beyond the start."""
        positions = self._ends[rows][:, None] - 1 - np.arange(self._length)  # [B, L]
        return np.where(positions >= self._starts[self._events.users[rows]][:, None], positions, -1)

    def _others(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the events that follow in the user's list, round its end, up to the row itself."""
        users = self._events.users[rows]
        starts, stops = self._starts[users][:, None], self._stops[users][:, None]
        steps = np.arange(1, self._length + 1)
        inside = steps < stops - starts
        positions = starts + (rows[:, None] - starts + steps) % (stops - starts)  # [B, L]
        if not self._repeats:
            inside = inside & (self._events.items[positions] != self._events.items[rows][:, None])
        return np.where(inside, positions, -1)


def _check_positions(positions: NDArray[np.int64], num_events: int) -> None:
    if len(positions) and not 0 <= positions.min() <= positions.max() < num_events:
        raise ArgumentError(
            f"`positives` must hold positions from 0 to {num_events - 1}, got "
            f"{positions.min()} to {positions.max()}."
        )
