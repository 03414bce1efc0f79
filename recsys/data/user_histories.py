"""What each user had in several parts together.

Dimensions: P parts, U users.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.data.events import Events
from recsys.data.ranges_of_parts import EVENTS_AT_ONCE, RangesOfParts
from recsys.foundations import Ragged


def join_histories(
    parts: Sequence[Events],
    clock: str,
    num_users: int,
    num_items: int,
    *,
    users: NDArray[np.int64] | None = None,
    events_at_once: int = EVENTS_AT_ONCE,
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
        events_at_once: The most events of a block, unless one user has more.

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
        ranges = RangesOfParts.of(parts, num_users, users)
        lists, times = _join(parts, ranges, num_items, is_timed, events_at_once)
    if clock != "time" or times is None:
        return lists, None
    return lists, Ragged(lists.offsets, times)


def _join(
    parts: Sequence[Events],
    ranges: RangesOfParts,
    num_items: int,
    is_timed: bool,
    events_at_once: int,
) -> tuple[Ragged, NDArray[np.int64] | None]:
    items = np.empty(ranges.num_events, np.result_type(*(part.items for part in parts)))
    times = np.empty(len(items) if is_timed else 0, np.int64)
    offsets = np.zeros(ranges.starts.shape[1] + 1, np.int64)
    filled = 0
    for block in ranges.blocks(events_at_once):
        places = ranges.places(block)
        owners = np.concatenate([owners for owners, _ in places])
        met = _take(places, [part.items for part in parts])
        moments = _take(places, [part.timestamps for part in parts]) if is_timed else None
        order = np.arange(len(owners))
        if len(parts) > 1:
            order = np.lexsort([owners] if moments is None else [moments, owners])
        order = order[met[order] < num_items]
        stop = filled + len(order)
        items[filled:stop] = met[order]
        if moments is not None:
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
