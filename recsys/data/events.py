"""Interactions as rows, sorted by user and time."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.data.features import FeatureTable
from recsys.data.mapped_arrays import row_blocks
from recsys.foundations import Ragged


@dataclass(frozen=True)
class Events:
    """N interactions, sorted by user, then by time, then by their order in the input.

    Attributes:
        users: [N], user rows, never falling; int32 where they are mapped from a file, so that
            what is computed of them (such as user * num_items) must be made int64 first.
        items: [N], item rows, likewise int32; rows at or above the number of candidates can be in
            a validation or test part only.
        timestamps: [N], int64; microseconds (UTC) or an order, by the data set's clock; or None.
        weights: [N], float32, or None where every weight is 1.
        context: N rows; of an empty schema where the log has no context columns.
        offsets: [U + 1], int64: the events of user u are those from ``offsets[u]`` to before
            ``offsets[u + 1]``; None: not known beforehand, `offsets_of` counts them.
    """

    users: NDArray[np.integer]
    items: NDArray[np.integer]
    timestamps: NDArray[np.int64] | None
    weights: NDArray[np.float32] | None
    context: FeatureTable
    offsets: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.users)

    def offsets_of(self, num_users: int | None = None) -> NDArray[np.int64]:
        """Give where the events of each user begin, and where the last one's end.

        Args:
            num_users: U, above every user row. None: up to the last user that has an event.

        Returns:
            [U + 1], int64; those that are known already where they are as many or more.
        """
        last = int(self.users[-1]) if len(self) else -1
        size = last + 1 if num_users is None else num_users
        if self.offsets is not None and len(self.offsets) > size:
            return self.offsets[: size + 1]
        counts = np.zeros(size, np.int64)
        for rows in row_blocks(len(self)):
            first, stop = int(self.users[rows.start]), int(self.users[rows.stop - 1]) + 1
            counts[first:stop] += np.bincount(self.users[rows] - first, minlength=stop - first)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def by_user(self, num_users: int) -> Ragged:
        """Give the item rows of each user, oldest first.

        Args:
            num_users: Lists wanted; every user row must be below it.
        """
        return Ragged(self.offsets_of(num_users), self.items)

    def slice(self, start: int, stop: int) -> "Events":
        """Give events start to before stop; the columns are views."""
        return Events(
            self.users[start:stop],
            self.items[start:stop],
            None if self.timestamps is None else self.timestamps[start:stop],
            None if self.weights is None else self.weights[start:stop],
            self.context.slice(start, stop),
        )

    def take(self, positions: NDArray[np.integer]) -> "Events":
        """Take events by position, in the order given."""
        return Events(
            self.users[positions],
            self.items[positions],
            None if self.timestamps is None else self.timestamps[positions],
            None if self.weights is None else self.weights[positions],
            self.context.take(positions),
        )
