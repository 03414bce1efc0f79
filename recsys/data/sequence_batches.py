"""Batches of stretches of users' events, each event a positive at its place in the stretch.

Dimensions: R windows in the batch, P positives, L inputs of the longest window.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.data.events import Events, history_ends
from recsys.data.training_batch import NO_TIME, HistoryPlaces, TrainingBatch
from recsys.data.user_ranges import UserRanges, join_ranges, take_padded
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
    ) -> None:
        check_positive("batch_size", batch_size)
        check_positive("history_length", history_length)
        if clock == "none":
            raise ArgumentError("`clock` must be time or order for sequences, got none.")
        self._events, self._seed = events, seed
        self._length, self._batch_size, self._drop_last = history_length, batch_size, drop_last
        self._times = events.timestamps if clock == "time" else None
        self._users = UserRanges.of(events)
        self._ends = history_ends(events, clock=clock, ties=ties)

    @property
    def num_rows(self) -> int:
        """Count the positives of an epoch, those of a batch that is dropped among them."""
        return len(self._events)

    def count_batches(self, epochs: int) -> int:
        """Count the batches of the first epochs, which differ by where the cuts fall."""
        sizes = (self._count(len(self._cut(epoch).begins)) for epoch in range(epochs))
        return sum(sizes)

    def epoch(self, epoch: int, *, first_batch: int = 0) -> Iterator[TrainingBatch]:
        """Yield the batches of an epoch from `first_batch` on; the same ones every time."""
        windows = self._cut(epoch)
        order = make_numpy_generator(self._seed, "batches", epoch).permutation(len(windows.begins))
        for batch in range(first_batch, self._count(len(order))):
            start = batch * self._batch_size
            yield self._take(windows.take(order[start : start + self._batch_size]))

    def _count(self, num_windows: int) -> int:
        whole, rest = divmod(num_windows, self._batch_size)
        return whole + (rest > 0 and not self._drop_last)

    def _cut(self, epoch: int) -> "_Windows":
        generator = make_numpy_generator(self._seed, "windows", epoch)
        sizes, length = self._users.sizes, self._length
        first = generator.integers(1, length + 1, size=len(sizes))  # positives before the first cut
        first = np.where(sizes <= length + 1, sizes, first)
        numbers = 1 - (first - sizes) // length  # windows of each user
        owners = np.repeat(np.arange(len(sizes)), numbers)
        places = np.arange(len(owners)) - (numbers.cumsum() - numbers)[owners]
        starts, ends = self._users.starts[owners], self._users.stops[owners]
        stops = starts + first[owners] + places * length
        begins = np.where(places == 0, starts, stops - length)
        return _Windows(begins, np.minimum(stops, ends), np.maximum(begins - 1, starts))

    def _take(self, windows: "_Windows") -> TrainingBatch:
        events, times = self._events, self._times
        rows, positions = join_ranges(windows.begins, windows.stops)  # [P] and [P]
        ages = np.arange(max(windows.num_inputs.max(), 1))
        inputs = windows.stops[:, None] - 2 - ages  # [R, L]
        inputs = np.where(inputs >= windows.lows[:, None], inputs, -1)
        skipped = windows.stops[rows] - 1 - self._ends[positions]
        nothing = skipped >= windows.num_inputs[rows]
        return TrainingBatch(
            users=events.users[positions],
            positives=events.items[positions],
            histories=take_padded(events.items, inputs, -1),
            weights=None if events.weights is None else events.weights[positions],
            context=events.context.take(positions),
            times=None if times is None else take_padded(times, inputs, NO_TIME),
            places=HistoryPlaces(rows, np.where(nothing, len(ages), skipped)),
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
