"""The least that turns a log in time order into columns by user: what `prepare` is held against.

No checks, no filters, no statistics, no hashes, no text of ids: distinct ids by hash tables, codes
in memory maps, the last event of each user for the test, and the rows of both parts by user.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

_ROWS_AT_ONCE = 2**20
_IDS_AT_ONCE = 2**24  # are made distinct together
_COLUMNS = {"user_id": np.int32, "item_id": np.int32, "timestamp": np.int64}
_ROW = np.uint64(2**32 - 1)


def prepare_reference(path: Path, folder: Path) -> None:
    """Code, split and order a log; write the columns of each part as bare arrays.

    Args:
        path: Parquet with the integers user_id, item_id and timestamp, oldest rows first, of at
            most 2**32 rows.
        folder: Where to; it is there.
    """
    num_rows = pq.read_metadata(path).num_rows
    ids = {name: pd.Index(_distinct(path, name)) for name in ("user_id", "item_id")}
    columns = {
        name: np.memmap(folder / name, kind, "w+", shape=num_rows)
        for name, kind in _COLUMNS.items()
    }
    last = np.full(len(ids["user_id"]), -1, np.int64)
    first = 0
    for batch in _batches(path, list(_COLUMNS)):
        rows = slice(first, first + len(batch))
        for name, index in ids.items():
            columns[name][rows] = index.get_indexer(batch[name].to_numpy())
        columns["timestamp"][rows] = batch["timestamp"].to_numpy()
        np.maximum.at(last, columns["user_id"][rows], np.arange(rows.start, rows.stop))
        first = rows.stop
    del ids
    is_test = np.zeros(num_rows, bool)
    is_test[last[last >= 0]] = True
    _write_by_user(columns, is_test, folder)


def _batches(path: Path, names: list[str]) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path) as opened:
        for group in range(opened.num_row_groups):
            yield from opened.iter_batches(_ROWS_AT_ONCE, row_groups=[group], columns=names)


def _distinct(path: Path, name: str) -> NDArray[np.int64]:
    known, waiting, size = np.zeros(0, np.int64), [], 0
    for batch in _batches(path, [name]):
        waiting.append(batch[name].to_numpy())
        size += len(batch)
        if size >= _IDS_AT_ONCE:
            known, waiting, size = pd.unique(np.concatenate([known, *waiting])), [], 0
    return pd.unique(np.concatenate([known, *waiting]))


def _write_by_user(
    columns: Mapping[str, NDArray[Any]], is_test: NDArray[np.bool_], folder: Path
) -> None:
    """Write the rows of each part by user, and by their order within a user."""
    order = np.arange(len(is_test), dtype=np.uint64)
    for start in range(0, len(order), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        order[rows] |= columns["user_id"][rows].astype(np.uint64) << np.uint64(32)
    order.sort()
    for name, column in columns.items():
        with (
            (folder / f"train-{name}").open("wb") as train,
            (folder / f"test-{name}").open("wb") as test,
        ):
            for start in range(0, len(order), _ROWS_AT_ONCE):
                places = (order[start : start + _ROWS_AT_ONCE] & _ROW).view(np.int64)
                values, chosen = column[places], is_test[places]
                values[~chosen].tofile(train)
                values[chosen].tofile(test)
