"""Batches of stretches of users' events, each event a positive at its place in the stretch.

Dimensions: R windows in the batch, P positives, L inputs of the longest window.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.data.events import Events
from recsys.data.history_ranges import HistoryRanges
from recsys.data.newest_values import NewestValues
from recsys.data.shuffled_rows import POOL_ROWS, ShuffledRows
from recsys.data.training_batch import NO_TIME, BatchStream, HistoryPlaces, TrainingBatch
from recsys.data.user_ranges import UserRanges, join_ranges
from recsys.foundations import ArgumentError, check_positive, make_numpy_generator


class SequenceBatches:
    """Every training event once an epoch, many of them in one history, for a causal encoder.

    A user's events are cut into windows of at most `history_length` positives, the first cut at
    random by seed and epoch; all events stay in one window where that has at most `history_length`
    inputs. The inputs of a window are the events that its positives see: those before the last
    one, from one event before the first one on. A positive so sees at least the event before it,
    and at most `history_length` of them.

    Args:
        events: The training part, sorted by user, then by order.
        clock: "time" or "order", as the dataset states it.
        ties: "include": events of the same time stand in input order; "exclude": they do not see
            each other.
        history_length: The most inputs of a window.
        batch_size: R; the last batch of an epoch may be smaller.
        drop_last: Whether that smaller batch is left out.
        seed: Of the cuts and of the order.
        shuffle_rows: The most windows that are shuffled at a time; see `ShuffledRows`.

    Raises:
        ArgumentError: A size is not above 0, or there is no order.
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
        shuffle_rows: int = POOL_ROWS,
    ) -> None:
        check_positive("batch_size", batch_size)
        check_positive("history_length", history_length)
        if clock == "none":
            raise ArgumentError("`clock` must be time or order for sequences, got none.")
        self._events, self._seed, self._shuffle_rows = events, seed, shuffle_rows
        self._length, self._batch_size, self._drop_last = history_length, batch_size, drop_last
        self._users = UserRanges.of(events)
        self._ranges = HistoryRanges(events, clock=clock, ties=ties)
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
        """Count the batches of the first epochs, which differ by where the cuts fall."""
        numbers = (int(self._first_cuts(epoch)[1].sum()) for epoch in range(epochs))
        return sum(map(self._count, numbers))

    def epoch(self, epoch: int, *, first_batch: int = 0) -> BatchStream:
        """Yield the batches of an epoch from `first_batch` on; the same ones every time."""
        windows = self._cut(epoch)
        num_windows = len(windows.begins)
        order = ShuffledRows(num_windows, pool_rows=self._shuffle_rows, seed=self._seed)
        batches = order.batches(epoch, self._batch_size, first_batch=first_batch)
        for chosen in itertools.islice(batches, max(self._count(num_windows) - first_batch, 0)):
            yield self._take(windows.take(chosen))

    def _count(self, num_windows: int) -> int:
        whole, rest = divmod(num_windows, self._batch_size)
        return whole + (rest > 0 and not self._drop_last)

    def _first_cuts(self, epoch: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Give the positives of each user before the first cut, and the number of windows."""
        generator = make_numpy_generator(self._seed, "windows", epoch)
        sizes, length = self._users.sizes, self._length
        first = generator.integers(1, length + 1, size=len(sizes))
        first = np.where(sizes <= length + 1, sizes, first)
        return first, 1 - (first - sizes) // length

    def _cut(self, epoch: int) -> "_Windows":
        first, numbers = self._first_cuts(epoch)
        owners = np.repeat(np.arange(len(numbers)), numbers)
        places = np.arange(len(owners)) - (numbers.cumsum() - numbers)[owners]
        starts, ends = self._users.starts[owners], self._users.stops[owners]
        stops = starts + first[owners] + places * self._length
        begins = np.where(places == 0, starts, stops - self._length)
        return _Windows(begins, np.minimum(stops, ends), np.maximum(begins - 1, starts))

    def _take(self, windows: "_Windows") -> TrainingBatch:
        events, times = self._events, self._times
        rows, positions = join_ranges(windows.begins, windows.stops)  # [P] and [P]
        ends, num_inputs = windows.stops - 1, windows.num_inputs
        width = int(max(num_inputs.max(), 1))
        skipped = ends[rows] - self._ranges.of(positions)[1]
        nothing = skipped >= num_inputs[rows]
        return TrainingBatch(
            users=events.users.take(positions).astype(np.int64),
            positives=events.items.take(positions).astype(np.int64),
            histories=self._items.take(ends, num_inputs, width),
            weights=None if events.weights is None else events.weights.take(positions),
            context=events.context.take(positions),
            times=None if times is None else times.take(ends, num_inputs, width),
            places=HistoryPlaces(rows, np.where(nothing, width, skipped)),
        )


@dataclass(frozen=True)
class _Windows:
    """Where the positives of each window begin and stop, and where its inputs begin: each [W]."""

    begins: NDArray[np.int64]
    stops: NDArray[np.int64]
    lows: NDArray[np.int64]

    @property
    def num_inputs(self) -> NDArray[np.int64]:
        return self.stops - 1 - self.lows

    def take(self, places: NDArray[np.int64]) -> "_Windows":
        return _Windows(self.begins[places], self.stops[places], self.lows[places])
