"""Where the events of users stand in several parts, in blocks that memory holds.

Dimensions: P parts, U users.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from recsys.data.events import Events
from recsys.data.user_ranges import join_ranges

EVENTS_AT_ONCE = 2**22


@dataclass(frozen=True)
class RangesOfParts:
    """The ranges of each user's events.

    Attributes:
        starts: [P, U], int64, position of the user's first event in the part.
        stops: [P, U], int64, position behind the last one.
    """

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]

    @classmethod
    def of(
        cls, parts: Sequence[Events], num_users: int, users: NDArray[np.int64] | None = None
    ) -> Self:
        """Find them.

        Args:
            parts: P of them.
            num_users: Above every user row.
            users: [U], rows of the users asked about. None: all below `num_users`.
        """
        offsets = np.stack([part.offsets_of(num_users) for part in parts])
        rows = slice(None) if users is None else users
        return cls(offsets[:, :-1][:, rows], offsets[:, 1:][:, rows])

    @property
    def num_events(self) -> int:
        """Count the events of all."""
        return int((self.stops - self.starts).sum())

    def blocks(self, num_events: int) -> Iterator[slice]:
        """Give slices of the users: at most so many events together, or one user."""
        ends = (self.stops - self.starts).sum(axis=0).cumsum()
        start, done = 0, 0
        while start < len(ends):
            stop = max(int(np.searchsorted(ends, done + num_events, side="right")), start + 1)
            yield slice(start, stop)
            start, done = stop, int(ends[stop - 1])

    def places(self, block: slice) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Give for each part the users of a block's events, from 0, and the events' positions."""
        pairs = zip(self.starts[:, block], self.stops[:, block], strict=True)
        return [join_ranges(starts, stops) for starts, stops in pairs]
