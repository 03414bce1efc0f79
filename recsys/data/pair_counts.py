"""Distinct pairs of user and item: how many there are, and how many stand in several parts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.data.coded_log import CodedLog
from recsys.data.column_file import ColumnFile
from recsys.data.split_settings import TEST, TRAIN, VALIDATION
from recsys.data.stable_order import run_starts


@dataclass(frozen=True)
class PairCounts:
    """Numbers of distinct pairs.

    Attributes:
        distinct: Of the whole log.
        common: (part, other part) -> pairs that stand in both.
    """

    distinct: int
    common: dict[tuple[int, int], int]


_ASKED = ((VALIDATION, TRAIN), (TEST, TRAIN), (TEST, VALIDATION))


def count_pairs(log: CodedLog, parts: ColumnFile) -> PairCounts:
    """Count distinct pairs.

    Args:
        log: M rows; where no user has an item twice there is nothing to read.
        parts: [M], int8, a position in PARTS.
    """
    if log.distinct_pairs:
        return PairCounts(len(log), dict.fromkeys(_ASKED, 0))
    distinct, common = 0, dict.fromkeys(_ASKED, 0)
    for block in log.blocks("item", what="comparing parts"):
        sets = _sets_of_parts(block.pairs(len(log.item_ids)), parts.read(block.start, block.stop))
        distinct += len(sets)
        for part, other in _ASKED:
            both = 1 << part | 1 << other
            common[part, other] += int(np.count_nonzero(sets & both == both))
    return PairCounts(distinct, common)


def _sets_of_parts(pairs: NDArray[np.int64], parts: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Give, for each distinct pair, the parts that it stands in, as bits."""
    rising = np.sort(pairs * 8 + parts)
    starts = np.flatnonzero(run_starts(rising >> 3))
    return np.bitwise_or.reduceat(np.uint8(1) << (rising & 7).astype(np.uint8), starts)
