"""The columns of each part's events on disk: by user row, then time, then input order."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.data.coded_log import DTYPES, PARTS, Block, CodedLog
from recsys.data.column_file import ColumnFile
from recsys.data.mapped_arrays import row_blocks
from recsys.data.memory_budget import MemoryBudget
from recsys.data.part_counts import PartCounts

_EVENTS_AT_ONCE = 2**20  # whose users are written together


@dataclass(frozen=True)
class PartColumns:
    """The events of one part: N rows.

    Attributes:
        offsets: [user rows + 1], int64, where the events of each user row begin.
        columns: "user" and "item" (rows, int32), and what else the log has.
    """

    offsets: NDArray[np.int64]
    columns: dict[str, ColumnFile]

    def __len__(self) -> int:
        return int(self.offsets[-1])


def order_events(
    log: CodedLog,
    parts: ColumnFile,
    counts: PartCounts,
    *,
    user_rows: NDArray[np.int64],
    item_rows: NDArray[np.int64],
    num_users: int,
    budget: MemoryBudget,
) -> dict[str, PartColumns]:
    """Write the events of each part in the order of the rows of their users.

    Args:
        log: Sorted by user code, then time, then input order; its columns go.
        parts: [M], int8, the part of each row.
        counts: Of the parts.
        user_rows: [users], int64, row of each code; -1 without events.
        item_rows: [items], likewise.
        num_users: User rows.
        budget: How many events are put in order together; a user with more needs more.

    Returns:
        Part -> its columns, for train, validation, test and the others that have events.
    """
    names = [name for name in log.columns if name != "part"]
    found = {}
    for part in map(PARTS.index, counts.names()):
        rows = _by_row(counts.users[part], user_rows, num_users)
        columns = {name: log.work.column(PARTS[part], log.columns[name].dtype) for name in names}
        columns["user"] = log.work.column(PARTS[part], np.int32)
        found[part] = PartColumns(np.concatenate([[0], np.cumsum(rows)]), columns)
    everyone = np.sum([one.offsets for one in found.values()], axis=0)
    narrow_items = item_rows.astype(np.int32)
    num_ids, size = len(user_rows) + len(item_rows), sum(DTYPES[name]().nbytes for name in names)
    for first, stop in _windows(everyone, budget.events_at_once(num_ids, size)):
        window = _Window(found, first, stop)
        for block in log.blocks(*names, what="ordering events"):
            block.columns["item"] = narrow_items[block.columns["item"]]
            window.place(block, parts.read(block.start, block.stop), user_rows[block.users])
        window.write()
    for column in log.columns.values():
        column.remove()
    return {PARTS[part]: columns for part, columns in found.items()}


class _Window:
    """The events of a range of user rows, in memory while they are put in order."""

    def __init__(self, parts: Mapping[int, PartColumns], first: int, stop: int) -> None:
        self._parts, self._first, self._stop = parts, first, stop
        self._values = {
            part: {
                name: np.empty(int(one.offsets[stop] - one.offsets[first]), column.dtype)
                for name, column in one.columns.items()
                if name != "user"
            }
            for part, one in parts.items()
        }

    def place(self, block: Block, parts: NDArray[np.int8], user_rows: NDArray[np.int64]) -> None:
        """Put the events of a block where they belong, those of other windows left out."""
        inside = (user_rows >= self._first) & (user_rows < self._stop)
        if not inside.any():
            return
        columns = block.columns
        if not inside.all():
            chosen = np.flatnonzero(np.repeat(inside, block.counts))
            parts = parts[chosen]
            columns = {name: column[chosen] for name, column in columns.items()}
        for part, values in self._values.items():
            places = self._places(part, np.where(inside, user_rows, -1))
            if not len(places):
                continue
            mine = slice(None) if len(places) == len(parts) else np.flatnonzero(parts == part)
            for name, column in values.items():
                column[places] = columns[name][mine]

    def _places(self, part: int, user_rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give where the events of users stand in the window, one user's after another's.

        Args:
            part: Of the events.
            user_rows: Of the users; -1: has none here.
        """
        offsets = self._parts[part].offsets
        starts = offsets[user_rows]
        counts = np.where(user_rows < 0, 0, offsets[user_rows + 1] - starts)
        shifts = starts - offsets[self._first] - (np.cumsum(counts) - counts)
        places: NDArray[np.int64] = np.arange(counts.sum()) + np.repeat(shifts, counts)
        return places

    def write(self) -> None:
        """Add the events to the files."""
        for part, values in self._values.items():
            columns, offsets = self._parts[part].columns, self._parts[part].offsets
            for name, column in values.items():
                columns[name].append(column)
            start = int(offsets[self._first])
            for events in row_blocks(int(offsets[self._stop]) - start, _EVENTS_AT_ONCE):
                columns["user"].append(_owners(offsets, start + events.start, start + events.stop))


def _owners(offsets: NDArray[np.int64], start: int, stop: int) -> NDArray[np.int32]:
    """Give the user row of each of the events `start` to before `stop`, at least one."""
    first = int(np.searchsorted(offsets, start, side="right")) - 1
    last = int(np.searchsorted(offsets, stop, side="left"))
    inside: NDArray[np.int64] = np.clip(offsets[first : last + 1], start, stop)
    return np.repeat(np.arange(first, last, dtype=np.int32), np.diff(inside))


def _by_row(
    counts: NDArray[np.integer], user_rows: NDArray[np.int64], num_users: int
) -> NDArray[np.int64]:
    """Bring counts by code into the order of the rows."""
    known = user_rows >= 0
    by_row = np.zeros(num_users, np.int64)
    by_row[user_rows[known]] = counts[known]
    return by_row


def _windows(ends: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Divide user rows, whose events begin at `ends`, into ranges of at most so many events."""
    first, last = 0, len(ends) - 1
    while first < last:
        stop = int(np.searchsorted(ends, ends[first] + most, side="right")) - 1
        stop = min(max(stop, first + 1), last)
        yield first, stop
        first = stop
