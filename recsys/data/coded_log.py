"""A log whose ids are codes, on disk: what filters and splits work on, a block at a time."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from recsys.data.column_file import ColumnFile
from recsys.data.id_lists import KnownIds
from recsys.data.work_folder import WorkFolder
from recsys.foundations import Progress

PARTS = ("train", "validation", "test", "validation_input", "test_input")
RESERVED = ("user_id", "item_id", "timestamp", "weight")
ROWS_AT_ONCE = 2**18  # of a block; with all that is computed of them they fit the caches
# Columns of a coded log. `row`: where each row stood in the input; `part`: where it was given.
DTYPES: dict[str, type[np.generic]] = {
    "item": np.int32,
    "timestamp": np.int64,
    "weight": np.float32,
    "row": np.int64,
    "part": np.int8,
}


@dataclass(frozen=True)
class Block:
    """N rows of consecutive users, sorted by user, then time, then input order.

    Attributes:
        start: Where the first row stands in the log.
        first_user: Code of the first user.
        counts: [users of the block], int64, rows of each; 0 is possible.
        columns: Name -> [N].
    """

    start: int
    first_user: int
    counts: NDArray[np.int64]
    columns: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return int(self.counts.sum())

    @property
    def stop(self) -> int:
        """Give the place behind the last row in the log."""
        return self.start + len(self)

    @property
    def users(self) -> slice:
        """Give the range of the users' codes."""
        return slice(self.first_user, self.first_user + len(self.counts))

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """Give the user of each row, from 0 for the block's first one: [N], never falling."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def pairs(self, num_items: int) -> NDArray[np.int64]:
        """Give one number for each user and item: [N], int64."""
        pairs: NDArray[np.int64] = self.owners * np.int64(num_items) + self.columns["item"]
        return pairs

    def keep(self, kept: NDArray[np.bool_]) -> "Block":
        """Leave out rows: [N] bool; `start` is not that of a smaller log."""
        counts = np.bincount(self.owners[kept], minlength=len(self.counts))
        columns = {name: column[kept] for name, column in self.columns.items()}
        return Block(self.start, self.first_user, counts, columns)


@dataclass(frozen=True)
class CodedLog:
    """M interactions, sorted by user, then time, then input order.

    Attributes:
        work: The folder of the columns.
        user_ids: By code; filters leave ids that no row uses any more.
        item_ids: Likewise.
        counts: [users], int64, rows of each user: the rows of user 0 stand first.
        item_counts: [items], int64, rows of each item.
        columns: The columns that there are, of `DTYPES`.
        num_input_rows: Rows of the input, the filtered ones too.
        time_range: The first and the last time; None without times or rows.
        distinct_pairs: Whether it is known that no user has an item twice.
    """

    work: WorkFolder
    user_ids: KnownIds
    item_ids: KnownIds
    counts: NDArray[np.int64]
    item_counts: NDArray[np.int64]
    columns: dict[str, ColumnFile]
    num_input_rows: int
    time_range: tuple[int, int] | None
    distinct_pairs: bool = False

    def __len__(self) -> int:
        return len(self.columns["item"])

    @property
    def num_users(self) -> int:
        """Count the users that have a row."""
        return int(np.count_nonzero(self.counts))

    @property
    def num_items(self) -> int:
        """Count the items that have a row."""
        return int(np.count_nonzero(self.item_counts))

    def has(self, name: str) -> bool:
        """Tell whether there is a column."""
        return name in self.columns

    def blocks(self, *names: str, what: str) -> Iterator[Block]:
        """Read columns block by block, with a progress bar.

        Args:
            names: The columns that are read.
            what: What is being done, for the bar.
        """
        ends = np.cumsum(self.counts)
        first, start = 0, 0
        with Progress(what, len(self), "rows") as bar:
            while start < len(self):
                stop_user = int(np.searchsorted(ends, start + ROWS_AT_ONCE, side="right"))
                stop_user = max(stop_user, first + 1)
                stop = int(ends[stop_user - 1])
                columns = {name: self.columns[name].read(start, stop) for name in names}
                yield Block(start, first, self.counts[first:stop_user], columns)
                bar.advance(stop - start)
                first, start = stop_user, stop

    def new_column(self, name: str, dtype: DTypeLike, values: Iterable[NDArray[Any]]) -> ColumnFile:
        """Write a column that stands beside the log's own, from its values block by block."""
        column = self.work.column(name, dtype)
        for block in values:
            column.append(block)
        return column

    def without_column(self, name: str) -> "CodedLog":
        """Leave a column out."""
        self.columns[name].remove()
        return replace(self, columns={n: c for n, c in self.columns.items() if n != name})


class LogWriter:
    """Writes blocks of consecutive users as a log.

    Args:
        work: The folder of the columns.
        names: The columns, of `DTYPES`.
        num_items: Codes of items.
    """

    def __init__(self, work: WorkFolder, names: Iterable[str], num_items: int) -> None:
        self.columns = {name: work.column(name, DTYPES[name]) for name in names}
        self.item_counts = np.zeros(num_items, np.int64)
        self.time_range: tuple[int, int] | None = None
        self._counts: list[NDArray[np.int64]] = []

    def append(self, counts: NDArray[np.int64], columns: Mapping[str, NDArray[Any]]) -> None:
        """Add the rows of the next users.

        Args:
            counts: [U], rows of each.
            columns: Name -> [sum of the counts].
        """
        self._counts.append(counts)
        for name, column in self.columns.items():
            column.append(columns[name])
        np.add.at(self.item_counts, columns["item"], 1)  # work that does not grow with the items
        if "timestamp" in self.columns and len(columns["timestamp"]):
            times = columns["timestamp"]
            ends = (int(times.min()), int(times.max()))
            first, last = self.time_range or ends
            self.time_range = (min(first, ends[0]), max(last, ends[1]))

    @property
    def counts(self) -> NDArray[np.int64]:
        """Give the rows of each user so far."""
        return np.concatenate([np.zeros(0, np.int64), *self._counts])
