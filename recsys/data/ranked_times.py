"""Which time stands at which place of a log in order of time, without sorting the log."""

import numpy as np
from numpy.typing import NDArray

from recsys.data.coded_log import CodedLog

_BINS = 2**16
_TIMES_AT_ONCE = 2**20  # that are sorted


class RankedTimes:
    """The times of a log, counted in equal bins; the bin that is asked for is divided further.

    Args:
        log: At least one row, with times.
    """

    def __init__(self, log: CodedLog) -> None:
        self._log = log
        self._range = log.time_range or (0, 0)
        self._widest = self._count_bins(*self._range)

    def __len__(self) -> int:
        return len(self._log)

    def at(self, place: int) -> int:
        """Give the time at a place, from 0, of the times in order."""
        (lowest, highest), counts = self._range, self._widest
        while True:
            ends, width = np.cumsum(counts), _width(lowest, highest)
            number = int(np.searchsorted(ends, place, side="right"))
            inside = int(counts[number])
            place -= int(ends[number]) - inside
            lowest += number * width
            if width == 1:
                return lowest
            highest = lowest + width - 1
            if inside <= _TIMES_AT_ONCE:
                return int(np.sort(self._between(lowest, highest))[place])
            counts = self._count_bins(lowest, highest)

    def count_before(self, moment: int) -> int:
        """Count the rows before a moment."""
        blocks = self._log.blocks("timestamp", what="looking for a cut in time")
        return sum(int(np.count_nonzero(b.columns["timestamp"] < moment)) for b in blocks)

    def _count_bins(self, lowest: int, highest: int) -> NDArray[np.int64]:
        """Count the rows of each bin of a range of times, both ends of which are inside."""
        counts, width = np.zeros(_BINS, np.int64), _width(lowest, highest)
        for block in self._log.blocks("timestamp", what="counting times"):
            times = block.columns["timestamp"]
            times = times[(times >= lowest) & (times <= highest)]
            counts += np.bincount((times - lowest) // width, minlength=_BINS)
        return counts

    def _between(self, lowest: int, highest: int) -> NDArray[np.int64]:
        found = []
        for block in self._log.blocks("timestamp", what="looking for a cut in time"):
            times = block.columns["timestamp"]
            found.append(times[(times >= lowest) & (times <= highest)])
        return np.concatenate(found)


def _width(lowest: int, highest: int) -> int:
    return (highest - lowest) // _BINS + 1
