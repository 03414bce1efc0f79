"""Running sums of values that change, and the search in them, both in O(log N)."""

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, check_integers, check_shape


class FenwickTree:
    """N whole numbers under a binary indexed tree.

    Node i (from 1) holds the sum of the ``i & -i`` values that end with value i. K values are
    changed, and K running sums are searched, in O(K log N), as about log2 N whole-array steps; the
    tree is built in O(N).

    Args:
        values: [N], int64, not negative; at least one.

    Raises:
        ArgumentError: There is no value, or one is negative.
        ShapeError: `values` is not [N].

    Source:
        "A new data structure for cumulative frequency tables", Software: Practice and Experience
        1994. Differs: padded to a power of two with zeros, so that the search needs no bounds.
    """

    def __init__(self, values: NDArray[np.int64]) -> None:
        check_shape("values", values, None)
        check_integers("values", values)
        if not len(values) or (values < 0).any():
            raise ArgumentError("`values` must hold one number or more, and none below 0.")
        self.values = values.astype(np.int64)  # a copy
        self._capacity = 1 << (len(values) - 1).bit_length()  # a power of two, at least N
        running = np.zeros(self._capacity + 1, dtype=np.int64)
        running[1 : len(values) + 1] = self.values
        running = running.cumsum()
        nodes = np.arange(self._capacity + 1)
        self._tree = running - running[nodes - (nodes & -nodes)]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def total(self) -> int:
        """Give the sum of all values."""
        return int(self._tree[-1])

    def add(self, places: NDArray[np.int64], amounts: NDArray[np.int64]) -> None:
        """Add to the values at some places; a place may come several times.

        Args:
            places: [K], int64, in [0, N).
            amounts: [K], int64, not negative.

        Raises:
            ArgumentError: A place is outside, or an amount is negative.
        """
        check_integers("places", places)
        if ((places < 0) | (places >= len(self))).any():
            raise ArgumentError(f"`places` must be in [0, {len(self)}).")
        if (amounts < 0).any():
            raise ArgumentError("`amounts` must not be negative.")
        np.add.at(self.values, places, amounts)
        nodes = places + 1
        while len(nodes):
            np.add.at(self._tree, nodes, amounts)
            nodes = nodes + (nodes & -nodes)
            inside = nodes <= self._capacity
            nodes, amounts = nodes[inside], amounts[inside]

    def find(self, targets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Find the first place whose running sum, itself included, is above each target.

        Args:
            targets: [K], int64, in [0, total).

        Returns:
            [K], int64, in [0, N); a place of value 0 is never found.

        Raises:
            ArgumentError: A target is outside.
        """
        if ((targets < 0) | (targets >= self.total)).any():
            raise ArgumentError(f"`targets` must be in [0, {self.total}).")
        found, rest = np.zeros(len(targets), dtype=np.int64), targets.copy()
        step = self._capacity >> 1
        while step:
            sums = self._tree[found + step]
            passed = sums <= rest
            found += step * passed
            rest -= sums * passed
            step >>= 1
        return found
