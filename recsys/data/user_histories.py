"""What each user had in several parts together.

Dimensions: P parts, U users.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recsys.data.events import Events
from recsys.data.user_ranges import join_ranges
from recsys.foundations import Ragged

_EVENTS_AT_ONCE = 2**22


def join_histories(
    parts: Sequence[Events],
    clock: str,
    num_users: int,
    num_items: int,
    *,
    users: NDArray[np.int64] | None = None,
) -> tuple[Ragged, Ragged | None]:
    """Give what each user had in several parts, oldest first, and when.

    Works in blocks of users; where the lists are those of one part as it stands, they are views.

    Args:
        parts: Earlier parts first: of events at the same time, and of all events where a part
            has no times, those of the earlier part come first.
        clock: "time", "order" or "none".
        num_users: Users; every user row must be below it.
        num_items: Candidates; events of other items are left out.
        users: Rows of the users asked about, rising. None: all of them.

    Returns:
        As many lists of item rows, in which repeats stay; and as many lists of when each was met,
        int64, in µs. None in place of the latter unless the clock is "time".
    """
    count = num_users if users is None else len(users)
    if not parts:
        return Ragged.empty(count), Ragged.empty(count) if clock == "time" else None
    is_timed = all(part.timestamps is not None for part in parts)
    if len(parts) == 1 and users is None and _has_candidates_alone(parts[0], num_items):
        lists, times = parts[0].by_user(num_users), parts[0].timestamps
    else:
        lists, times = _join(parts, _Ranges.of(parts, num_users, users), num_items, is_timed)
    if clock != "time" or times is None:
        return lists, None
    return lists, Ragged(lists.offsets, times)


@dataclass(frozen=True)
class _Ranges:
    """Where the events of U users begin and stop in P parts: [P, U] each."""

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]

    @classmethod
    def of(cls, parts: Sequence[Events], num_users: int, users: NDArray[np.int64] | None) -> Self:
        offsets = np.stack([part.offsets_of(num_users) for part in parts])
        rows = slice(None) if users is None else users
        return cls(offsets[:, :-1][:, rows], offsets[:, 1:][:, rows])

    def blocks(self) -> Iterator[slice]:
        """Give slices of users that have so many events together as are worked on at once."""
        ends = (self.stops - self.starts).sum(axis=0).cumsum()
        start, done = 0, 0
        while start < len(ends):
            stop = max(int(np.searchsorted(ends, done + _EVENTS_AT_ONCE, side="right")), start + 1)
            yield slice(start, stop)
            start, done = stop, int(ends[stop - 1])


def _join(
    parts: Sequence[Events], ranges: _Ranges, num_items: int, is_timed: bool
) -> tuple[Ragged, NDArray[np.int64] | None]:
    num_events = int((ranges.stops - ranges.starts).sum())
    items = np.empty(num_events, np.result_type(*(part.items for part in parts)))
    times = np.empty(num_events if is_timed else 0, np.int64)
    offsets = np.zeros(ranges.starts.shape[1] + 1, np.int64)
    filled = 0
    for block in ranges.blocks():
        places = [
            join_ranges(*pair)
            for pair in zip(ranges.starts[:, block], ranges.stops[:, block], strict=True)
        ]
        owners = np.concatenate([owners for owners, _ in places])
        met = _take(places, [part.items for part in parts])
        keys = [owners]
        if is_timed:
            moments = _take(places, [part.timestamps for part in parts])
            keys.insert(0, moments)
        order = np.lexsort(keys) if len(parts) > 1 else np.arange(len(owners))
        order = order[met[order] < num_items]
        stop = filled + len(order)
        items[filled:stop] = met[order]
        if is_timed:
            times[filled:stop] = moments[order]
        lengths = np.bincount(owners[order], minlength=block.stop - block.start)
        offsets[block.start + 1 : block.stop + 1] = filled + lengths.cumsum()
        filled = stop
    return Ragged(offsets, items[:filled]), times[:filled] if is_timed else None


def _take(
    places: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    columns: Sequence[NDArray[Any] | None],
) -> NDArray[Any]:
    return np.concatenate(
        [
            column.take(rows)
            for column, (_, rows) in zip(columns, places, strict=True)
            if column is not None
        ]
    )


def _has_candidates_alone(events: Events, num_items: int) -> bool:
    return len(events) == 0 or int(events.items.max()) < num_items
