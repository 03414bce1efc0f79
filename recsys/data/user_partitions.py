"""Rows of a log, spread over partitions on disk so that all rows of a user stand in one.

Each flush sorts a large batch by partition and appends it to one file a column, so that a group of
neighbouring partitions is one range of every flush; rows stay in input order within a partition.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from recsys.data.column_file import ColumnFile
from recsys.data.feature_columns import whole_column
from recsys.data.hashing import spread_bits, string_buffers
from recsys.data.id_kinds import TEXT
from recsys.data.id_lists import IdArray
from recsys.data.text_words import hash_texts
from recsys.data.work_folder import WorkFolder
from recsys.foundations import DataError

_NUM_PARTITIONS = 256
_ROWS_A_FLUSH = 2**17  # with all that is computed of them they fit the caches


@dataclass(frozen=True)
class UserGroup:
    """All rows of some users, in input order.

    Attributes:
        users: [N], int64 or large_string.
        columns: Name -> [N].
    """

    users: IdArray
    columns: dict[str, NDArray[Any]]


class UserPartitions:
    """Takes rows in input order and gives them back by users.

    Args:
        work: The folder for the files.
        kind: Of the ids of users (see `id_kinds`).
        dtypes: Name -> type of each further column.
    """

    def __init__(self, work: WorkFolder, kind: str, dtypes: Mapping[str, DTypeLike]) -> None:
        self._users = _TextSpill(work) if kind == TEXT else _NumberSpill(work)
        self._columns = {name: work.column(name, dtype) for name, dtype in dtypes.items()}
        self._bounds: list[NDArray[np.int64]] = []  # of each flush: [partitions + 1]
        self._num_flushed = 0
        self._forget_waiting()

    def __len__(self) -> int:
        return self._num_flushed + self._num_waiting

    @property
    def names(self) -> list[str]:
        """Give the names of the further columns."""
        return list(self._columns)

    def add(self, users: IdArray, columns: Mapping[str, NDArray[Any]]) -> None:
        """Add rows; every column has as many as there are users."""
        self._waiting.append((users, columns))
        self._num_waiting += len(users)
        if self._num_waiting >= _ROWS_A_FLUSH:
            self._flush()

    def clear(self) -> None:
        """Forget all rows."""
        for column in (*self._columns.values(), *self._users.files):
            column.clear()
        self._users.forget()
        self._bounds.clear()
        self._num_flushed = 0
        self._forget_waiting()

    def remove(self) -> None:
        """Remove the files."""
        for column in (*self._columns.values(), *self._users.files):
            column.remove()

    def sizes(self) -> NDArray[np.int64]:
        """Count the rows of each partition."""
        if self._num_waiting:
            self._flush()
        bounds = np.array(self._bounds, np.int64).reshape(-1, _NUM_PARTITIONS + 1)
        sizes: NDArray[np.int64] = np.diff(bounds, axis=1).sum(axis=0)
        return sizes

    def groups(self, rows_at_once: int) -> Iterator[UserGroup]:
        """Give all rows by groups of users.

        Args:
            rows_at_once: Rows of a group, unless a single partition has more.
        """
        sizes, first = self.sizes(), 0
        while first < _NUM_PARTITIONS:
            ends = np.cumsum(sizes[first:])
            stop = first + max(int(np.searchsorted(ends, rows_at_once, side="right")), 1)
            num_rows = int(sizes[first:stop].sum())
            if num_rows:
                yield self._read(first, stop, num_rows)
            first = stop

    def _read(self, first: int, stop: int, num_rows: int) -> UserGroup:
        ranges = [(int(bounds[first]), int(bounds[stop])) for bounds in self._bounds]
        users = self._users.read(ranges, first, stop, num_rows)
        columns = {
            name: _read_ranges(column, ranges, num_rows) for name, column in self._columns.items()
        }
        return UserGroup(users, columns)

    def _flush(self) -> None:
        users = _join([users for users, _ in self._waiting])
        columns = {
            name: np.concatenate([columns[name] for _, columns in self._waiting])
            for name in self._columns
        }
        self._forget_waiting()
        partition = self._users.partition_of(users)
        # Radix sort: for numbers of 8 bits NumPy's stable sort is a counting one.
        order = np.argsort(partition, kind="stable")
        counts = np.bincount(partition, minlength=_NUM_PARTITIONS)
        bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self._users.append(users, order, bounds)
        for name, column in self._columns.items():
            column.append(columns[name].take(order, mode="clip"))  # without a second check
        self._bounds.append(bounds + self._num_flushed)
        self._num_flushed += len(users)

    def _forget_waiting(self) -> None:
        self._waiting: list[tuple[IdArray, Mapping[str, NDArray[Any]]]] = []
        self._num_waiting = 0


class _NumberSpill:
    """Users that are numbers of 64 bits."""

    def __init__(self, work: WorkFolder) -> None:
        self._numbers = work.column("user", np.int64)
        self.files = [self._numbers]

    def partition_of(self, users: IdArray) -> NDArray[np.uint8]:
        return _top_byte(np.asarray(users, np.int64).view(np.uint64))

    def append(self, users: IdArray, order: NDArray[np.int64], bounds: NDArray[np.int64]) -> None:
        del bounds
        self._numbers.append(np.asarray(users).take(order, mode="clip"))

    def read(
        self, ranges: list[tuple[int, int]], first: int, stop: int, num_rows: int
    ) -> NDArray[Any]:
        del first, stop
        return _read_ranges(self._numbers, ranges, num_rows)

    def forget(self) -> None:
        """Forget what is known of the rows beside the files."""


class _TextSpill:
    """Users that are texts: their lengths and their bytes."""

    def __init__(self, work: WorkFolder) -> None:
        self._lengths, self._bytes = work.column("length", np.int32), work.column("user", np.uint8)
        self.files = [self._lengths, self._bytes]
        self._byte_bounds: list[NDArray[np.int64]] = []

    def partition_of(self, users: IdArray) -> NDArray[np.uint8]:
        return _top_byte(hash_texts(users))

    def append(self, users: IdArray, order: NDArray[np.int64], bounds: NDArray[np.int64]) -> None:
        offsets, symbols = string_buffers(users.take(pa.array(order)))
        lengths = np.diff(offsets)
        if len(lengths) and lengths.max() >= 2**31:
            raise DataError("The id of a user has 2 GiB or more.")
        self._byte_bounds.append(offsets[bounds] + len(self._bytes))
        self._lengths.append(lengths)
        self._bytes.append(symbols)

    def read(
        self, ranges: list[tuple[int, int]], first: int, stop: int, num_rows: int
    ) -> pa.LargeStringArray:
        lengths = _read_ranges(self._lengths, ranges, num_rows)
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        byte_ranges = [(int(bounds[first]), int(bounds[stop])) for bounds in self._byte_bounds]
        symbols = _read_ranges(self._bytes, byte_ranges, int(offsets[-1]))
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(symbols)]
        return pa.Array.from_buffers(pa.large_string(), num_rows, buffers)

    def forget(self) -> None:
        """Forget what is known of the rows beside the files."""
        self._byte_bounds.clear()


def _top_byte(numbers: NDArray[np.uint64]) -> NDArray[np.uint8]:
    return (spread_bits(numbers) >> np.uint64(56)).astype(np.uint8)


def _read_ranges(
    column: ColumnFile, ranges: list[tuple[int, int]], num_values: int
) -> NDArray[Any]:
    values, filled = np.empty(num_values, column.dtype), 0
    for start, stop in ranges:
        if stop > start:
            column.read_into(values[filled : filled + stop - start], start)
            filled += stop - start
    return values


def _join(blocks: list[IdArray]) -> IdArray:
    if isinstance(blocks[0], np.ndarray):
        return np.concatenate(blocks)
    return whole_column(pa.chunked_array(blocks))
