"""How many rows each user and each item has in each part of a split."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.data.coded_log import PARTS, CodedLog
from recsys.data.column_file import ColumnFile


@dataclass(frozen=True)
class PartCounts:
    """Rows by part.

    Attributes:
        rows: [parts], int64.
        users: [parts, users], integers, by code.
        items: [parts, items], int64, by code.
    """

    rows: NDArray[np.int64]
    users: NDArray[np.integer]
    items: NDArray[np.int64]

    def names(self) -> list[str]:
        """List the parts that a data set has: the three usual ones, and others that have rows."""
        return [name for part, name in enumerate(PARTS) if part < 3 or self.rows[part]]


def count_parts(log: CodedLog, parts: ColumnFile) -> PartCounts:
    """Count the rows of each part.

    Args:
        log: M rows.
        parts: [M], int8, a position in PARTS.
    """
    num_parts = len(PARTS)
    kind = np.int32 if len(log) < 2**31 else np.int64
    # Parts that no row is of cost nothing: their zeros are never touched.
    users = np.zeros((num_parts, len(log.counts)), kind)
    items = np.zeros((num_parts, len(log.item_counts)), np.int64)
    rows = np.zeros(num_parts, np.int64)
    for block in log.blocks("item", what="counting parts"):
        part_of_row = parts.read(block.start, block.stop)
        present = np.bincount(part_of_row, minlength=num_parts)
        rows += present
        for part in np.flatnonzero(present):
            mine = slice(None) if present[part] == len(block) else part_of_row == part
            owners, codes = block.owners[mine], block.columns["item"][mine]
            users[part, block.users] = np.bincount(owners, minlength=len(block.counts))
            np.add.at(items[part], codes, 1)
    return PartCounts(rows, users, items)
