"""Which time stands at which place of a log in order of time, without sorting the log."""

import numpy as np
from numpy.typing import NDArray

from recsys.data.coded_log import CodedLog

_BINS = 2**16


class RankedTimes:
    """The times of a log, counted in equal bins; only the bin that is asked for is sorted.

    Args:
        log: At least one row, with times.
    """

    def __init__(self, log: CodedLog) -> None:
        self._log = log
        self._lowest, highest = log.time_range or (0, 0)
        self._width = (highest - self._lowest) // _BINS + 1
        self._ends = np.zeros(_BINS, np.int64)  # rows up to the end of each bin
        for block in log.blocks("timestamp", what="counting times"):
            self._ends += np.bincount(self._bins(block.columns["timestamp"]), minlength=_BINS)
        self._ends = np.cumsum(self._ends)

    def __len__(self) -> int:
        return len(self._log)

    def at(self, place: int) -> int:
        """Give the time at a place, from 0, of the times in order."""
        number = int(np.searchsorted(self._ends, place, side="right"))
        return int(self._sorted_bin(number)[place - self._rows_before(number)])

    def count_before(self, moment: int) -> int:
        """Count the rows before a moment."""
        number = (moment - self._lowest) // self._width
        if not 0 <= number < _BINS:
            return 0 if number < 0 else len(self)
        inside = int(np.searchsorted(self._sorted_bin(number), moment))
        return self._rows_before(number) + inside

    def _bins(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        return (times - self._lowest) // self._width

    def _rows_before(self, number: int) -> int:
        return int(self._ends[number - 1]) if number else 0

    def _sorted_bin(self, number: int) -> NDArray[np.int64]:
        """Give the times of one bin in order."""
        first = self._lowest + number * self._width
        found = []
        for block in self._log.blocks("timestamp", what="looking for a cut in time"):
            times = block.columns["timestamp"]
            found.append(times[(times >= first) & (times < first + self._width)])
        return np.sort(np.concatenate(found))
