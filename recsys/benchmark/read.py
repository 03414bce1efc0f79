"""Reading a log, checked and with ids as text, against Arrow's bare readers."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from recsys.benchmark.measure import time_alternately
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.result import BenchmarkResult, time_ratio
from recsys.benchmark.synthetic import make_events
from recsys.data import ColumnNames, TableFormat, read_interactions
from recsys.foundations import make_numpy_generator

_START = 1_672_531_200  # 2023-01-01T00:00:00Z, in seconds


def measure_read(
    *, num_rows: int, num_users: int, num_items: int, rounds: int, seed: int
) -> BenchmarkResult:
    """Time the reading of a made-up log, as CSV and as Parquet.

    Args:
        num_rows: Interactions.
        num_users: Users.
        num_items: Items.
        rounds: Rounds.
        seed: Of the log.
    """
    table = _make_log(num_rows, num_users, num_items, seed)
    with TemporaryDirectory(prefix="recsys-benchmark-") as folder:
        csv_path, parquet_path = Path(folder, "log.csv"), Path(folder, "log.parquet")
        csv.write_csv(table, csv_path)
        pq.write_table(table, parquet_path)
        jobs = {
            "CSV": _reader(csv_path),
            "CSV, bare": lambda: csv.read_csv(csv_path),
            "Parquet": _reader(parquet_path),
            "Parquet, bare": lambda: pq.read_table(parquet_path),
        }
        seconds = time_alternately("read", jobs, rounds=rounds)
    measurements = {name: Measurement(taken, num_rows, "rows") for name, taken in seconds.items()}
    return BenchmarkResult(
        "read",
        "reading interactions with checks, ids as text and hashes of the files; Arrow alone",
        {"num_rows": num_rows, "num_users": num_users, "num_items": num_items, "rounds": rounds},
        measurements,
        tuple(time_ratio(measurements, form, f"{form}, bare") for form in ("CSV", "Parquet")),
    )


def _make_log(num_rows: int, num_users: int, num_items: int, seed: int) -> pa.Table:
    rng = make_numpy_generator(seed, "benchmark", "read")
    events = make_events(num_rows=num_rows, num_users=num_users, num_items=num_items, rng=rng)
    return pa.table(
        {
            "user_id": events.users,
            "item_id": events.items,
            "timestamp": _START + rng.integers(365 * 86_400, size=num_rows),
            "rating": rng.integers(1, 6, size=num_rows),
        }
    )


def _reader(path: Path) -> Callable[[], object]:
    return lambda: read_interactions(
        path, format=TableFormat(), columns=ColumnNames(), timestamp_unit="s"
    )
