"""Preparing a log from its file to the data set, beside the least program that could do it."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from recsys.benchmark.growth import growth_of
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.prepare_jobs import prepare_log, run_reference, write_log, write_text_log
from recsys.benchmark.process_use import ProcessUse, process_use
from recsys.benchmark.result import BenchmarkResult, Ratio, memory_ratio, time_ratio
from recsys.foundations import Progress, check_choice, check_positive

_INTEGERS, _TEXTS, _REFERENCE = "integer ids", "string ids", "reference program"
_KINDS = {"int": (_INTEGERS,), "string": (_TEXTS,), "both": (_INTEGERS, _TEXTS)}
_MOST_ROUNDS = 3  # a process each
_SMALLER = 10  # how many times smaller the log is that growth begins with

Jobs = dict[str, Callable[[], None]]


def measure_prepare(
    *,
    rows: int,
    ids: str,
    rows_a_user: int,
    rows_an_item: int,
    memory_gb: float,
    rounds: int,
    seed: int,
) -> BenchmarkResult:
    """Measure what preparing a made-up log takes, and what a log of a tenth of its rows takes.

    The seconds of the measurements are core-seconds; those of the clock have lines of their own.
    The reference program reads integer ids.

    Args:
        rows: Interactions; in a temporary folder 16 bytes each, as text 32, and up to 50 more.
        ids: "int", "string" or "both".
        rows_a_user: Mean interactions of a user.
        rows_an_item: Likewise of an item.
        memory_gb: As of `prepare_dataset`.
        rounds: At most three are taken.
        seed: Of the log.
    """
    check_choice("ids", ids, tuple(_KINDS))
    check_positive("rows", rows)
    measured: dict[int, dict[str, Measurement]] = {}
    for size in sorted({max(rows // _SMALLER, 1), rows}):
        with TemporaryDirectory(prefix="recsys-benchmark-") as folder:
            sizes = {
                "num_rows": size,
                "num_users": max(size // rows_a_user, 1),
                "num_items": max(size // rows_an_item, 1),
            }
            jobs = _jobs(Path(folder), _KINDS[ids], memory_gb, seed, **sizes)
            measured[size] = _measure(jobs, size, min(rounds, _MOST_ROUNDS))
    largest = measured[rows]
    return BenchmarkResult(
        "prepare",
        "a log from its file to the data set, in core-seconds; memory: all that the process held",
        {
            "rows": rows,
            "rows_a_user": rows_a_user,
            "rows_an_item": rows_an_item,
            "memory_gb": memory_gb,
            "threads": torch.get_num_threads(),
        },
        largest,
        tuple(_ratios(largest)),
        tuple(
            growth_of(name, "interactions", {size: one[name] for size, one in measured.items()})
            for name in largest
        ),
    )


def _jobs(folder: Path, kinds: tuple[str, ...], memory_gb: float, seed: int, **sizes: int) -> Jobs:
    """Write the logs, and give what is done with them."""
    numbers, texts = folder / "numbers.parquet", folder / "texts.parquet"
    write_log(numbers, seed=seed, **sizes)
    jobs: Jobs = {}
    if _INTEGERS in kinds:
        jobs[_INTEGERS] = partial(prepare_log, numbers, memory_gb)
    if _TEXTS in kinds:
        write_text_log(texts, numbers)
        jobs[_TEXTS] = partial(prepare_log, texts, memory_gb)
    return jobs | {_REFERENCE: partial(run_reference, numbers)}


def _measure(jobs: Jobs, num_rows: int, rounds: int) -> dict[str, Measurement]:
    """Run the jobs in turn, each in a process of its own."""
    threads = torch.get_num_threads()
    used: dict[str, list[ProcessUse]] = {name: [] for name in jobs}
    with Progress(f"benchmark prepare, {num_rows:,} rows", rounds * len(jobs), "jobs") as bar:
        for _ in range(rounds):
            for name, job in jobs.items():
                used[name].append(process_use(job, threads=threads))
                bar.advance(1)
    found = {}
    for name, uses in used.items():
        core_seconds, seconds = zip(*((one.core_seconds, one.seconds) for one in uses), strict=True)
        peak = max(one.peak_bytes for one in uses)
        found[name] = Measurement(core_seconds, num_rows, "rows", peak_bytes=peak)
        found[f"{name}, by the clock"] = Measurement(seconds, num_rows, "rows")
    return found


def _ratios(measured: Mapping[str, Measurement]) -> list[Ratio]:
    pairs = [(_INTEGERS, _REFERENCE), (_TEXTS, _REFERENCE), (_TEXTS, _INTEGERS)]
    present = [pair for pair in pairs if measured.keys() >= set(pair)]
    times = [time_ratio(measured, *pair) for pair in present]
    return times + [memory_ratio(measured, *pair) for pair in present if pair[1] == _REFERENCE]
