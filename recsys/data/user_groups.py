"""The rows of some users, brought into order: by user, then time, then input order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.data.id_coder import whole_dictionary
from recsys.data.id_lists import IdArray
from recsys.data.stable_order import run_starts, stable_order
from recsys.data.user_partitions import UserGroup


def sort_group(group: UserGroup) -> tuple[IdArray, NDArray[np.int64], dict[str, NDArray[Any]]]:
    """Sort the rows of a group.

    Args:
        group: In input order.

    Returns:
        The distinct ids [U]; the rows of each user: [U], int64; and the columns, sorted.
    """
    ids, counts, order = _by_user(group.users)
    columns = {name: column.take(order, mode="clip") for name, column in group.columns.items()}
    if "timestamp" in columns:
        positions = _by_time(counts, columns["timestamp"])
        if positions is not None:
            columns = {name: column[positions] for name, column in columns.items()}
    return ids, counts, columns


def _by_user(users: IdArray) -> tuple[IdArray, NDArray[np.int64], NDArray[np.int64]]:
    if isinstance(users, np.ndarray):
        order = stable_order(users)
        rising = users.take(order, mode="clip")
        starts = np.flatnonzero(run_starts(rising))
        return rising[starts], np.diff(np.append(starts, len(users))), order
    encoded = whole_dictionary(users)
    codes = np.asarray(encoded.indices)
    return encoded.dictionary, np.bincount(codes), stable_order(codes)


def _by_time(counts: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Give the positions that sort each user's rows by time; None where they are sorted."""
    starts = np.cumsum(counts) - counts
    falls = times[1:] < times[:-1]
    falls[starts[1:] - 1] = False  # there another user begins
    places = np.flatnonzero(falls)
    if not len(places):
        return None
    unsorted = np.zeros(len(counts), bool)
    unsorted[np.searchsorted(starts, places, side="right") - 1] = True
    rows = np.flatnonzero(np.repeat(unsorted, counts))
    owners = np.repeat(np.arange(np.count_nonzero(unsorted)), counts[unsorted])
    order = stable_order(times[rows])
    order = order[stable_order(owners[order])]
    positions = np.arange(len(times))
    positions[rows] = rows[order]
    return positions
