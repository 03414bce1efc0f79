"""Distinct numbers by sorting: several times faster here than NumPy's own, which hashes."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.integer)


def sorted_distinct(values: NDArray[Number]) -> NDArray[Number]:
    """Give the distinct values of [M] integers, rising."""
    rising = np.sort(values)
    first = np.ones(len(rising), bool)
    np.not_equal(rising[1:], rising[:-1], out=first[1:])
    return rising[first]


def count_common(first: NDArray[np.integer], second: NDArray[np.integer]) -> int:
    """Count the values that two rising lists of distinct integers share."""
    if not len(second):
        return 0
    places = np.minimum(np.searchsorted(second, first), len(second) - 1)
    return int(np.count_nonzero(second[places] == first))
