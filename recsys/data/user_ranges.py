"""Where each user's events stand in a log that is sorted by user."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from recsys.data.events import Events


@dataclass(frozen=True)
class UserRanges:
    """The events of the users that have any, in the order of their rows.

    Attributes:
        users: [U], int64, user rows, rising.
        starts: [U], int64, position of the user's first event.
        stops: [U], int64, position behind the last one.
    """

    users: NDArray[np.int64]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]

    @classmethod
    def of(cls, events: Events) -> Self:
        """Find them."""
        offsets = events.offsets_of()
        users = np.flatnonzero(np.diff(offsets))
        return cls(users, offsets[users], offsets[users + 1])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Count the events of each user: [U], at least 1."""
        return self.stops - self.starts


def join_ranges(
    starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give all positions of ranges, one range after another, and the range of each.

    Args:
        starts: [R], int64.
        stops: [R], int64, exclusive; not below `starts`.

    Returns:
        The ranges, [P], int64, in [0, R), never falling; and the positions, [P], int64.
    """
    sizes = stops - starts
    ranges = np.repeat(np.arange(len(sizes)), sizes)
    before = sizes.cumsum() - sizes
    return ranges, np.arange(len(ranges)) + (starts - before)[ranges]
