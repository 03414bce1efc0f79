"""Draws that depend on where the rows of a log stood in the input, filtered rows left out."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from recsys.data.coded_log import CodedLog

Lookup = Callable[[NDArray[np.int64]], NDArray[np.integer]]
_NUMBERS_AT_ONCE = 2**20


class InputOrder:
    """The rows of a log in the order of the input.

    What has a number a row is mapped from a file.

    Args:
        log: With the column `row`.
    """

    def __init__(self, log: CodedLog) -> None:
        self._log = log
        self._ranks: NDArray[Any] | None = None
        if len(log) < log.num_input_rows:
            self._ranks = self._rank()

    def draw_places(self, generator: np.random.Generator) -> Lookup:
        """Draw an order of the rows, which depends on their number alone.

        Returns:
            Input rows -> the place of each in the order that was drawn.
        """
        order = self._draw(generator)
        places = self._file("places", len(order), np.int64)
        for start in range(0, len(order), _NUMBERS_AT_ONCE):
            rows = order[start : start + _NUMBERS_AT_ONCE]
            places[rows] = np.arange(start, start + len(rows))
        return lambda rows: places[self._ranks_of(rows)]

    def draw_parts(self, generator: np.random.Generator, sizes: dict[int, int]) -> Lookup:
        """Draw rows for parts, the first ones for the first part.

        Args:
            generator: Of the draws.
            sizes: Part -> rows of it; the other rows are of part 0.

        Returns:
            Input rows -> the part of each, int8.
        """
        order = self._draw(generator)
        parts = self._file("parts", len(order), np.int8)
        first = 0
        for part, size in sizes.items():
            parts[order[first : first + size]] = part
            first += size
        return lambda rows: parts[self._ranks_of(rows)]

    def _draw(self, generator: np.random.Generator) -> NDArray[Any]:
        """Draw the permutation that ``generator.permutation(len(log))`` gives."""
        order = self._file("order", len(self._log), np.int64)
        for start in range(0, len(order), _NUMBERS_AT_ONCE):
            stop = min(start + _NUMBERS_AT_ONCE, len(order))
            order[start:stop] = np.arange(start, stop)
        generator.shuffle(order)
        return order

    def _ranks_of(self, rows: NDArray[np.int64]) -> NDArray[np.integer]:
        return rows if self._ranks is None else self._ranks[rows]

    def _rank(self) -> NDArray[Any]:
        """Number the rows that are left in the order of the input."""
        left = self._file("left", self._log.num_input_rows, np.bool_)
        for block in self._log.blocks("row", what="numbering rows"):
            left[block.columns["row"]] = True
        ranks, before = self._file("ranks", len(left), np.int64), 0
        for start in range(0, len(left), _NUMBERS_AT_ONCE):
            found = np.cumsum(left[start : start + _NUMBERS_AT_ONCE])
            ranks[start : start + len(found)] = found + before - 1
            before += int(found[-1])
        return ranks

    def _file(self, name: str, length: int, dtype: DTypeLike) -> NDArray[Any]:
        return self._log.work.map_zeros(name, length, dtype)
