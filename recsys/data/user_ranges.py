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
        is_first = np.append(True, events.users[1:] != events.users[:-1])[: len(events)]
        starts = np.flatnonzero(is_first)
        return cls(events.users[starts], starts, np.append(starts, len(events))[1:])

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


def take_padded(
    values: NDArray[np.int64], positions: NDArray[np.int64], padding: int
) -> NDArray[np.int64]:
    """Take values by position, of any shape; `padding` where the position is below 0."""
    inside = positions >= 0
    return np.where(inside, values[np.where(inside, positions, 0)], padding)
