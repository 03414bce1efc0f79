"""Users and items with too few interactions, left out until all have enough."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from recsys.data.coded_log import CodedLog, LogWriter
from recsys.data.column_file import ColumnFile

_TRAIN = 0
Counts = NDArray[np.int64]


def drop_rare(log: CodedLog, min_user_rows: int, min_item_rows: int) -> tuple[CodedLog, int]:
    """Drop the rows of users and of items with too few rows, until neither removes a row.

    Where the parts were given, training rows are counted and dropped, no others.

    Args:
        log: Any.
        min_user_rows: At least 1.
        min_item_rows: At least 1.

    Returns:
        The rows left, and the number of rounds that removed some.
    """
    if max(min_user_rows, min_item_rows) == 1:
        return log, 0
    kept, users, items = _keep_all(log)
    rounds = 0
    while _any_below(users, min_user_rows) or _any_below(items, min_item_rows):
        enough = (users >= min_user_rows, items >= min_item_rows)
        before, (kept, users, items) = kept, _keep_enough(log, kept, *enough)
        before.remove()
        rounds += 1
    return (_take(log, kept) if rounds else log), rounds


def _any_below(counts: Counts, least: int) -> bool:
    return bool(((counts > 0) & (counts < least)).any())


def _keep_all(log: CodedLog) -> tuple[ColumnFile, Counts, Counts]:
    """Mark all rows as kept, and count those that count by user and by item."""
    everyone = (np.ones(len(log.counts), bool), np.ones(len(log.item_counts), bool))
    return _keep_enough(log, None, *everyone)


def _keep_enough(
    log: CodedLog,
    kept: ColumnFile | None,
    users: NDArray[np.bool_],
    items: NDArray[np.bool_],
) -> tuple[ColumnFile, Counts, Counts]:
    """Keep, of the rows kept so far, those whose user and item are marked.

    Returns:
        [M] bool; and the rows left that count, by user and by item.
    """
    left = log.work.column("kept", np.bool_)
    user_counts = np.zeros(len(log.counts), np.int64)
    item_counts = np.zeros(len(log.item_counts), np.int64)
    names = ["item", *(["part"] if log.has("part") else [])]
    for block in log.blocks(*names, what="dropping rare users and items"):
        found = items[block.columns["item"]]
        found &= np.repeat(users[block.users], block.counts)
        counted = np.ones(len(block), bool)
        if log.has("part"):
            counted = block.columns["part"] == _TRAIN
            found |= ~counted
        if kept is not None:
            found &= kept.read(block.start, block.stop)
        left.append(found)
        counted &= found
        user_counts[block.users] = np.bincount(block.owners[counted], minlength=len(block.counts))
        np.add.at(item_counts, block.columns["item"][counted], 1)
    return left, user_counts, item_counts


def _take(log: CodedLog, kept: ColumnFile) -> CodedLog:
    """Write the rows that are kept as a log of their own, and remove the old one."""
    writer = LogWriter(log.work, log.columns, len(log.item_counts))
    for block in log.blocks(*log.columns, what="dropping rows"):
        smaller = block.keep(kept.read(block.start, block.stop))
        writer.append(smaller.counts, smaller.columns)
    for column in (*log.columns.values(), kept):
        column.remove()
    return replace(
        log,
        counts=writer.counts,
        item_counts=writer.item_counts,
        columns=writer.columns,
        time_range=writer.time_range,
    )
