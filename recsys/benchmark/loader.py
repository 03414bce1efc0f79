"""Training batches from a mapped log against row by row and against Parquet, by size of the log."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from recsys.benchmark.growth import growth_of
from recsys.benchmark.loader_jobs import (
    LoggedEvents,
    get_items,
    make_batches,
    read_row_groups,
    run_epoch,
    take_users_and_items,
    write_log,
)
from recsys.benchmark.measure import Job, time_alternately
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.resident_memory import resident_peak
from recsys.benchmark.result import BenchmarkResult, time_ratio

_ALONE, _WITH = "users and items, shuffled", "batches with histories"
_ROW_BY_ROW, _PARQUET = "Dataset.__getitem__", "Parquet row groups, not shuffled"
_SLOW_BATCHES = 20  # a round, of what takes a hundred times as long


def measure_loader(
    *,
    num_rows: Sequence[int],
    events_a_user: int,
    num_items: int,
    history_length: int,
    batch_size: int,
    shuffle_rows: int,
    rounds: int,
    seed: int,
) -> BenchmarkResult:
    """Time how fast batches are made from a log that is mapped from a temporary folder.

    A round takes as many rows as are shuffled at a time.

    Args:
        num_rows: Events of the logs, rising; the first log is read in the other ways, too.
        events_a_user: Mean events of a user.
        num_items: Items.
        history_length: Events of history a row.
        batch_size: Rows a batch.
        shuffle_rows: The most rows that are shuffled at a time.
        rounds: Rounds.
        seed: Of the events and their order.
    """
    measured: dict[str, dict[int, Measurement]] = {_ALONE: {}, _WITH: {}}
    others: dict[str, Measurement] = {}
    for size in num_rows:
        how = {"history_length": history_length, "batch_size": batch_size, "seed": seed}
        num_users = max(size // events_a_user, 1)
        with _written(
            num_items, num_rows=size, num_users=num_users, shuffle_rows=shuffle_rows, **how
        ) as log:
            found = _measure(log, rounds, others=size == num_rows[0])
            for name, of_size in measured.items():
                of_size[size] = found.pop(name)
            others |= found
    first = {name: of_size[num_rows[0]] for name, of_size in measured.items()} | others
    return BenchmarkResult(
        "loader",
        "batches from a mapped log; other ways to read users and items. Memory: a whole epoch with "
        "histories, the pages of the log that it mapped among it",
        {
            "num_rows": list(num_rows),
            "events_a_user": events_a_user,
            "num_items": num_items,
            "history_length": history_length,
            "batch_size": batch_size,
            "shuffle_rows": shuffle_rows,
            "rounds": rounds,
        },
        first,
        (
            time_ratio(first, _ALONE, _ROW_BY_ROW),
            time_ratio(first, _ALONE, _PARQUET),
            time_ratio(first, _WITH, _ALONE),
        ),
        tuple(growth_of(name, "events of the log", of_size) for name, of_size in measured.items()),
    )


@contextmanager
def _written(num_items: int, **how: int) -> Iterator[LoggedEvents]:
    with TemporaryDirectory(prefix="recsys-benchmark-") as folder:
        log = LoggedEvents(folder=Path(folder, "train"), **how)
        write_log(log, num_items)
        yield log


def _measure(log: LoggedEvents, rounds: int, *, others: bool) -> dict[str, Measurement]:
    events = log.map()
    num_pools = -(-log.num_rows // log.shuffle_rows)
    batches = max(log.num_rows // num_pools // log.batch_size, 1)
    slow = min(_SLOW_BATCHES, batches)
    jobs: dict[str, tuple[Job, int]] = {
        _ALONE: (partial(take_users_and_items, log, events, batches), batches),
        _WITH: (partial(make_batches, log, events, batches), batches),
    }
    if others:
        jobs[_ROW_BY_ROW] = partial(get_items, log, events, slow), slow
        jobs[_PARQUET] = partial(read_row_groups, log), 0
    seconds = time_alternately(
        "loader", {name: job for name, (job, _) in jobs.items()}, rounds=rounds
    )
    peak = resident_peak(partial(run_epoch, log))
    return {
        name: Measurement(
            seconds[name],
            min(calls * log.batch_size, log.num_rows) if calls else log.num_rows,
            "rows",
            peak_bytes=peak if name == _WITH else None,
            calls=max(calls, 1),
        )
        for name, (_, calls) in jobs.items()
    }
