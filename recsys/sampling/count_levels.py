"""How many candidates have each count, kept while counts grow."""

import numpy as np
from numpy.typing import NDArray


class CountLevels:
    """The different counts, rising, and the number of candidates at each.

    There are no more than C of them, and no more than about ``sqrt(2 * sum of all counts)``, as
    different counts add up. A move of B counts costs O(B log B) and a copy of the levels.

    Args:
        counts: [K], int64, different and rising.
        numbers: [K], int64, above 0.
    """

    def __init__(self, counts: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        self.counts, self.numbers = counts, numbers

    def move(self, before: NDArray[np.int64], after: NDArray[np.int64]) -> None:
        """Take a candidate away from each count [B] that it had and add it at the one it has now.

        Args:
            before: [B], int64, counts that are held.
            after: [B], int64.
        """
        touched, places = np.unique(np.concatenate([before, after]), return_inverse=True)
        left, came = (np.bincount(part, minlength=len(touched)) for part in np.split(places, 2))
        fresh = ~np.isin(touched, self.counts, assume_unique=True)
        at = np.searchsorted(self.counts, touched[fresh])
        self.counts = np.insert(self.counts, at, touched[fresh])
        self.numbers = np.insert(self.numbers, at, 0)
        self.numbers[np.searchsorted(self.counts, touched)] += came - left
        held = self.numbers > 0
        self.counts, self.numbers = self.counts[held], self.numbers[held]
