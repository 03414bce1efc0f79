"""What the baselines learn from: who had which candidate.

Dimensions: U users, N candidates, B queries.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from recsys.data import Events
from recsys.foundations import ArgumentError, Ragged


@dataclass(frozen=True)
class Interactions:
    """M events of candidates.

    Attributes:
        users: [M], int64, user rows.
        items: [M], int64, in [0, num_items).
        timestamps: [M], int64, µs UTC, or None where there is no clock.
        num_items: N.
    """

    users: NDArray[np.int64]
    items: NDArray[np.int64]
    timestamps: NDArray[np.int64] | None
    num_items: int

    @classmethod
    def of(cls, parts: Sequence[Events], *, num_items: int, clock: str) -> "Interactions":
        """Join the events of several parts; those of items that are no candidates are left out."""
        users = np.concatenate([part.users for part in parts], dtype=np.int64)
        items = np.concatenate([part.items for part in parts], dtype=np.int64)
        kept = items < num_items
        stamps = [part.timestamps for part in parts if part.timestamps is not None]
        timed = clock == "time" and len(stamps) == len(parts)
        return cls(
            users[kept],
            items[kept],
            np.concatenate(stamps)[kept] if timed else None,
            num_items,
        )

    @cached_property
    def matrix(self) -> csr_array:
        """Give who had what: [U, N], float64, 1 where there is an event, however many."""
        shape = (int(self.users.max(initial=-1)) + 1, self.num_items)
        return _binary(self.users, self.items, shape)

    @cached_property
    def item_gram(self) -> NDArray[np.float64]:
        """Count the users that each pair of candidates has in common: [N, N]; small N only."""
        return np.asarray((self.matrix.T @ self.matrix).toarray())


def history_matrix(histories: Ragged, num_items: int) -> csr_array:
    """Give what B histories hold: [B, N], float64, 1 where an item stands in it."""
    return _binary(histories.owners(), histories.rows, (len(histories), num_items))


def decayed_history_matrix(histories: Ragged, num_items: int, decay: float) -> csr_array:
    """Give what B histories hold, late events more: [B, N], float64, the sum of decay ** age.

    Args:
        histories: B lists of item rows, oldest first; the newest event has the age 0.
        num_items: N.
        decay: Above 0, at most 1.

    Raises:
        ArgumentError: `decay` is out of range.
    """
    if not 0 < decay <= 1:
        raise ArgumentError(f"`decay` must be above 0 and at most 1, got {decay}.")
    owners = histories.owners()
    ages = histories.offsets[1:][owners] - 1 - np.arange(len(owners))
    shape = (len(histories), num_items)
    matrix = csr_array((decay ** ages.astype(np.float64), (owners, histories.rows)), shape=shape)
    matrix.sum_duplicates()
    return matrix


def _binary(
    owners: NDArray[np.int64], items: NDArray[np.int64], shape: tuple[int, int]
) -> csr_array:
    matrix = csr_array((np.ones(len(items)), (owners, items)), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix
