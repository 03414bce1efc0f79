"""A made-up log on disk, and the ways to read training batches from it.

Dimensions: N rows, B rows in a batch.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from torch.utils.data import DataLoader, Dataset

from recsys.benchmark.synthetic import zipf_rows
from recsys.data import (
    EventBatches,
    Events,
    FeatureSchema,
    FeatureTable,
    ShuffledRows,
    TrainingBatch,
    map_events,
    write_events,
)
from recsys.foundations import make_numpy_generator

_ROWS_AT_ONCE = 2**22
_NO_CONTEXT = FeatureSchema(())


@dataclass(frozen=True)
class LoggedEvents:
    """Where a made-up log lies, and how it is read.

    Attributes:
        folder: Its files, as those of a prepared part.
        num_rows: N.
        num_users: Users.
        history_length: Events of history a row.
        batch_size: B.
        shuffle_rows: The most rows that are shuffled at a time.
        seed: Of the order.
    """

    folder: Path
    num_rows: int
    num_users: int
    history_length: int
    batch_size: int
    shuffle_rows: int
    seed: int

    def map(self) -> Events:
        """Map the log."""
        return map_events(
            self.folder,
            _NO_CONTEXT,
            files=("timestamp.npy",),
            num_events=self.num_rows,
            num_users=self.num_users,
        )

    def batches(self, events: Events) -> Iterator[TrainingBatch]:
        """Give the batches of an epoch, with histories."""
        source = EventBatches(
            events,
            clock="time",
            ties="include",
            history_length=self.history_length,
            batch_size=self.batch_size,
            drop_last=False,
            seed=self.seed,
            shuffle_rows=self.shuffle_rows,
        )
        return source.epoch(0)


def write_log(log: LoggedEvents, num_items: int) -> None:
    """Write a log: users of very different activity, items popular by Zipf's law."""
    rng = make_numpy_generator(log.seed, "benchmark", "loader")
    activity = np.exp(rng.normal(0, 1.2, log.num_users))
    counts = rng.multinomial(log.num_rows, activity / activity.sum())
    items = np.empty(log.num_rows, np.int32)
    for start in range(0, log.num_rows, _ROWS_AT_ONCE):
        some = items[start : start + _ROWS_AT_ONCE]
        some[:] = zipf_rows(num_items, len(some), rng)
    events = Events(
        users=np.repeat(np.arange(log.num_users, dtype=np.int32), counts),
        items=items,
        timestamps=np.arange(log.num_rows) * 1_000_000,
        weights=None,
        context=FeatureTable.missing(_NO_CONTEXT, log.num_rows),
    )
    write_events(log.folder, events, log.num_users)


def take_users_and_items(log: LoggedEvents, events: Events, num_batches: int) -> None:
    """Take users and items of shuffled batches, and no more."""
    order = ShuffledRows(log.num_rows, pool_rows=log.shuffle_rows, seed=log.seed)
    for rows in itertools.islice(order.batches(0, log.batch_size), num_batches):
        events.users.take(rows), events.items.take(rows)


def make_batches(log: LoggedEvents, events: Events, num_batches: int) -> None:
    """Make shuffled training batches with histories."""
    for _ in itertools.islice(log.batches(events), num_batches):
        pass


def run_epoch(log: LoggedEvents) -> None:
    """Map the log and make all batches of an epoch."""
    for _ in log.batches(log.map()):
        pass


def get_items(log: LoggedEvents, events: Events, num_batches: int) -> None:
    """Read shuffled users and items row by row, through a data loader."""
    rows = _Rows(events, num_batches * log.batch_size)
    for _ in DataLoader(rows, batch_size=log.batch_size, shuffle=True):
        pass


def read_row_groups(log: LoggedEvents) -> None:
    """Read users and items from Parquet, one row group after another, as they stand."""
    for path in sorted(log.folder.glob("*.parquet")):
        file = pq.ParquetFile(path)
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=["user", "item"], use_threads=False)
            table["user"].to_numpy(), table["item"].to_numpy()


class _Rows(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    def __init__(self, events: Events, num_rows: int) -> None:
        self._users = torch.from_numpy(events.users[:num_rows].copy())
        self._items = torch.from_numpy(events.items[:num_rows].copy())

    def __len__(self) -> int:
        return len(self._users)

    def __getitem__(self, row: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self._users[row], self._items[row]
