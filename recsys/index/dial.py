"""How broadly an index must, or may, search: doubling, then bisection."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Of recall by twice the breadth: a share of what is missing, and of what is there. Two steps below
# both end the search.
_LEAST_GAIN, _LEAST_GROWTH = 0.05, 0.02
_STANDARD_ERRORS = 2

Recalls = Callable[[int], NDArray[np.float64]]
"""From a value of the dial to the index recall of each query: [Q]."""


@dataclass(frozen=True)
class Setting:
    """Where the search for a value ended.

    Attributes:
        value: The smallest that was found to meet the target, or the largest that was tried.
        recall: Mean over the queries there.
        meets: Whether it meets the target.
    """

    value: int
    recall: float
    meets: bool


def find_setting(recalls: Recalls, target: float, *, largest: int, smallest: int = 1) -> Setting:
    """Find the smallest value of a dial whose index recall meets a target with a margin.

    The margin is two standard errors of the mean, so that other queries meet the target too: with
    one, on 100,000 vectors, two of 30 sets of 1,000 other queries missed it. A recall of 1 needs
    none. Recall is taken to rise with the value.

    Args:
        recalls: Is asked some 2 log2(value) times.
        target: Of the mean; from 0 to 1.
        largest: The dial's largest value.
        smallest: Its smallest, at least 1.
    """
    tried: dict[int, Setting] = {}

    def at(value: int) -> Setting:
        if value not in tried:
            found = recalls(value)
            mean = float(found.mean())
            margin = _STANDARD_ERRORS * float(found.std()) / np.sqrt(len(found))
            tried[value] = Setting(value, mean, mean - margin >= target)
        return tried[value]

    low, high, idle = smallest - 1, smallest, 0
    while not at(high).meets:
        if low in tried:
            gain, missing = at(high).recall - at(low).recall, target - at(low).recall
            stalls = gain < min(_LEAST_GAIN * missing, _LEAST_GROWTH * at(low).recall)
            idle = idle + 1 if stalls else 0
        if high >= largest or idle == 2:
            return at(high)
        low, high = high, min(2 * high, largest)
    while high - low > max(1, low // 16):  # finer than that no one can time
        middle = (low + high) // 2
        low, high = (low, middle) if at(middle).meets else (middle, high)
    return at(high)


def find_largest(fits: Callable[[int], bool], *, largest: int, smallest: int = 1) -> int | None:
    """Find the largest value of a dial that fits, such as a search within a time.

    Values above one that does not fit are taken not to fit either.

    Args:
        fits: Is asked some 2 log2(value) times.
        largest: The dial's largest value.
        smallest: Its smallest, at least 1.

    Returns:
        It, within a sixteenth; None where not even the smallest fits.
    """
    low, high = 0, smallest
    while fits(high):
        if high >= largest:
            return high
        low, high = high, min(2 * high, largest)
    if not low:
        return None
    while high - low > max(1, low // 16):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
