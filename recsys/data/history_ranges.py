"""Which events of its user each event may know.

Dimensions: N events, B of them asked about.
"""

import numpy as np
from numpy.typing import NDArray

from recsys.data.events import Events
from recsys.foundations import check_choice


class HistoryRanges:
    """Tell for some events where their histories begin and end; nothing is kept for all events.

    Args:
        events: Sorted, as they are.
        clock: "time", "order" or "none".
        ties: "include": events of the same time that stand before it in the input count as
            before; "exclude": they do not.

    Raises:
        ArgumentError: `clock` or `ties` is another word.
    """

    def __init__(self, events: Events, *, clock: str, ties: str) -> None:
        check_choice("clock", clock, ("time", "order", "none"))
        check_choice("ties", ties, ("include", "exclude"))
        self._users, self._offsets = events.users, events.offsets_of()
        ordered = clock != "none" and events.timestamps is not None
        self._ordered = ordered
        self._times = events.timestamps if ordered and ties == "exclude" else None

    def of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Give the ranges ``start:end`` of events that some events may know.

        Args:
            rows: [B], positions of the events.

        Returns:
            Starts, [B], int64, of the user's events; and exclusive ends, [B], int64, which never
            pass the event itself where there is an order. Without one the end is that of the
            user's events: the caller leaves out the event's own item.
        """
        users = self._users.take(rows)
        starts = self._offsets.take(users)
        if not self._ordered:
            return starts, self._offsets[1:].take(users)
        return starts, rows if self._times is None else self._starts_of_ties(
            self._times, starts, rows
        )

    @staticmethod
    def _starts_of_ties(
        times: NDArray[np.int64], starts: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Give the first event of the user at the same time: by bisection, of all rows at once."""
        ends = rows.copy()
        tied = np.flatnonzero(rows > starts)
        tied = tied[times.take(rows[tied] - 1) == times.take(rows[tied])]
        low, high, wanted = starts[tied], rows[tied] - 1, times.take(rows[tied])
        while (low < high).any():
            middle = (low + high) // 2
            earlier = times.take(middle) < wanted
            low, high = np.where(earlier, middle + 1, low), np.where(earlier, high, middle)
        ends[tied] = low
        return ends
