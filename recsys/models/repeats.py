"""How often and how lately the items of a history were met.

Dimensions: B histories, P different items of all of them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged


@dataclass(frozen=True)
class Repeats:
    """A bonus for the items that a user had: ``weight * log(1 + count)``.

    The count of an item is the sum over its events of ``decay ** age``, where the age of the newest
    event of the history is 0, of the one before 1, and so on.

    Attributes:
        weight: In units of the score, above 0.
        decay: Above 0, at most 1.
        length: Events of a history that count, the newest.
    """

    weight: float
    decay: float
    length: int

    def bonus(self, histories: Ragged) -> tuple[Ragged, NDArray[np.float64]]:
        """Give the different items of B histories, and the bonus of each.

        Args:
            histories: B lists of item rows, oldest first. A row below 0 is an event of no item.

        Returns:
            B lists of rows, distinct and rising, and the [P] bonuses of these.
        """
        rows, counts = decayed_counts(histories, decay=self.decay, length=self.length)
        return rows, self.weight * np.log1p(counts)


def decayed_counts(
    histories: Ragged, *, decay: float, length: int
) -> tuple[Ragged, NDArray[np.float64]]:
    """Count the items of B histories as `Repeats` does.

    The counts of a history do not depend on the others.

    Returns:
        B lists of rows, distinct and rising, whatever the decay, and the [P] counts of these.
    """
    owners = histories.owners()
    ages = histories.offsets[1:][owners] - 1 - np.arange(len(owners))
    counted = (ages < length) & (histories.rows >= 0)
    owners, ages, items = owners[counted], ages[counted], histories.rows[counted].astype(np.int64)
    width = 1 + int(items.max(initial=0))
    keys, places = np.unique(owners * width + items, return_inverse=True)
    weights = decay ** np.arange(length, dtype=np.float64)  # the same for any batch
    counts = np.bincount(places, weights=weights[ages], minlength=len(keys)).astype(np.float64)
    return Ragged.from_pairs(keys // width, keys % width, len(histories)), counts
