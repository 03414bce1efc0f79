"""An array that is added to at its end, at a cost that does not grow with its length."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class GrowingArray:
    """Values of one type in memory; up to half of the room that it takes is empty.

    Args:
        dtype: Of the values.
    """

    def __init__(self, dtype: DTypeLike) -> None:
        self._room: NDArray[Any] = np.empty(0, dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, values: NDArray[Any]) -> None:
        """Add values behind the last one."""
        length = self._length + len(values)
        if length > len(self._room):
            room = np.empty(max(length, 2 * len(self._room)), self._room.dtype)
            room[: self._length] = self.values
            self._room = room
        self._room[self._length : length] = values
        self._length = length

    @property
    def values(self) -> NDArray[Any]:
        """Give a view of all values; it keeps them whatever is added later."""
        return self._room[: self._length]
