"""A made-up log as a file, and what is done with it."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from recsys.benchmark.prepare_reference import prepare_reference
from recsys.benchmark.synthetic import zipf_counts
from recsys.data import (
    FilterSettings,
    LogOptions,
    SplitSettings,
    TableFormat,
    open_interactions,
    prepare_dataset,
    spread_bits,
)
from recsys.foundations import make_numpy_generator

_START, _YEAR = 1_672_531_200, 365 * 86_400  # 2023-01-01T00:00:00Z and its length, in seconds
_ROWS_AT_ONCE = 2**20


def write_log(path: Path, *, num_rows: int, num_users: int, num_items: int, seed: int) -> None:
    """Write a log in the order of its times as Parquet.

    Users are alike, items popular by Zipf's law; ids are scattered over all numbers of 64 bits, as
    hashes are.

    Args:
        path: The file.
        num_rows: Interactions, spread evenly over a year.
        num_users: Users.
        num_items: Items.
        seed: Of the draws.
    """
    rng = make_numpy_generator(seed, "benchmark", "prepare")
    popularity = np.cumsum(zipf_counts(num_items))
    schema = pa.schema([(name, pa.int64()) for name in ("user_id", "item_id", "timestamp")])
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, num_rows, _ROWS_AT_ONCE):
            size = min(_ROWS_AT_ONCE, num_rows - first)
            points = rng.integers(popularity[-1], size=size)
            columns = {
                "user_id": _scattered(rng.integers(num_users, size=size)),
                "item_id": _scattered(np.searchsorted(popularity, points, side="right")),
                "timestamp": _START + (np.arange(first, first + size) * _YEAR) // num_rows,
            }
            writer.write_table(pa.table(columns, schema=schema))


def write_text_log(path: Path, numbers: Path) -> None:
    """Write a log once more, with its ids as text.

    Args:
        path: The file to write.
        numbers: What `write_log` wrote.
    """
    kinds = {"user_id": pa.string(), "item_id": pa.string(), "timestamp": pa.int64()}
    schema = pa.schema(list(kinds.items()))
    with pq.ParquetFile(numbers) as source, pq.ParquetWriter(path, schema) as writer:
        for group in range(source.num_row_groups):
            table = source.read_row_group(group)
            columns = [pc.cast(table[name], kind) for name, kind in kinds.items()]
            writer.write_table(pa.table(columns, schema=schema))


def prepare_log(path: Path, memory_gb: float) -> None:
    """Prepare a log with the default filters and split; the data set goes again."""
    log = open_interactions(path, LogOptions(timestamp_unit="s"), format=TableFormat())
    with TemporaryDirectory(dir=path.parent) as folder:
        prepare_dataset(
            log,
            items=None,
            users=None,
            output=Path(folder, "dataset"),
            filters=FilterSettings(),
            split=SplitSettings(),
            seed=0,
            exclude_seen=True,
            memory_gb=memory_gb,
        )


def run_reference(path: Path) -> None:
    """Run the reference program; its output goes again."""
    with TemporaryDirectory(dir=path.parent) as folder:
        prepare_reference(path, Path(folder))


def _scattered(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give each number another one of 64 bits, one to one."""
    mixed = spread_bits(numbers.astype(np.uint64) + np.uint64(1))
    mixed = spread_bits(mixed ^ (mixed >> np.uint64(32)))
    return (mixed ^ (mixed >> np.uint64(29))).view(np.int64)
