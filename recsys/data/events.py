"""Interactions as rows, sorted by user and time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.data.features import FeatureTable
from recsys.foundations import Ragged, check_choice


@dataclass(frozen=True)
class Events:
    """N interactions, sorted by user, then by time, then by their order in the input.

    Attributes:
        users: [N], int64, user rows; never falling.
        items: [N], int64, item rows; rows at or above the number of candidates can be in a
            validation or test part only.
        timestamps: [N], int64; microseconds (UTC) or an order, by the data set's clock; or None.
        weights: [N], float32, or None where every weight is 1.
        context: N rows; of an empty schema where the log has no context columns.
    """

    users: NDArray[np.int64]
    items: NDArray[np.int64]
    timestamps: NDArray[np.int64] | None
    weights: NDArray[np.float32] | None
    context: FeatureTable

    def __len__(self) -> int:
        return len(self.users)

    def by_user(self, num_users: int) -> Ragged:
        """Give the item rows of each user, oldest first.

        Args:
            num_users: Lists wanted; every user row must be below it.
        """
        counts = np.bincount(self.users, minlength=num_users)
        return Ragged(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), self.items)

    def take(self, positions: NDArray[np.integer]) -> "Events":
        """Take events by position, in the order given."""
        return Events(
            self.users[positions],
            self.items[positions],
            None if self.timestamps is None else self.timestamps[positions],
            None if self.weights is None else self.weights[positions],
            self.context.take(positions),
        )


def history_ends(events: Events, clock: str, ties: str) -> NDArray[np.int64]:
    """Give, for each event, the end of the events that its user had before it.

    The history of event i is ``events.items[start:end]``, from the start of its user to the end
    given here, which never passes i where there is an order.

    Args:
        events: Sorted, as they are.
        clock: "time", "order" or "none".
        ties: "include": events of the same time that stand before it in the input count as
            before; "exclude": they do not.

    Returns:
        [N], int64, exclusive ends. With clock "none" the end of the user's events: no order is
        known, so the caller leaves out the event's own item.
    """
    check_choice("clock", clock, ("time", "order", "none"))
    check_choice("ties", ties, ("include", "exclude"))
    positions = np.arange(len(events), dtype=np.int64)
    if len(events) == 0:
        return positions
    new_user = events.users[1:] != events.users[:-1]
    if clock == "none" or events.timestamps is None:
        lasts = np.append(np.flatnonzero(new_user) + 1, len(events))
        return np.asarray(lasts[np.searchsorted(lasts, positions, side="right")], np.int64)
    if ties == "include":
        return positions
    starts_run = np.append(True, new_user | (events.timestamps[1:] != events.timestamps[:-1]))
    return np.maximum.accumulate(np.where(starts_run, positions, 0))


def join_histories(
    parts: Sequence[Events], clock: str, num_users: int, num_items: int
) -> tuple[Ragged, Ragged | None]:
    """Give what each user had in several parts, oldest first, and when.

    Args:
        parts: Earlier parts first: of events at the same time, and of all events where a part
            has no times, those of the earlier part come first.
        clock: "time", "order" or "none".
        num_users: Lists wanted; every user row must be below it.
        num_items: Candidates; events of other items are left out.

    Returns:
        `num_users` lists of item rows, in which repeats stay; and as many lists of when each was
        met, int64, in µs. None in place of the latter unless the clock is "time".
    """
    if not parts:
        return Ragged.empty(num_users), Ragged.empty(num_users) if clock == "time" else None
    users = np.concatenate([events.users for events in parts])
    items = np.concatenate([events.items for events in parts])
    stamps = [events.timestamps for events in parts if events.timestamps is not None]
    order = np.flatnonzero(items < num_items)
    times = None
    if len(stamps) == len(parts):
        times = np.concatenate(stamps)
        order = order[np.argsort(times[order], kind="stable")]
    lists = Ragged.from_pairs(users[order], items[order], num_users)
    if clock != "time" or times is None:
        return lists, None
    return lists, Ragged.from_pairs(users[order], times[order], num_users)
