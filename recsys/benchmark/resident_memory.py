"""The most memory of a process while a job runs, as the system counts it."""

import contextlib
import resource
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from recsys.benchmark.fresh_process import run_in_fresh_process
from recsys.foundations import set_threads

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident_peak(
    job: Callable[..., object], *, prepare: Callable[[], object] | None = None
) -> int:
    """Run a job in a fresh process and give the rise of its peak resident memory, in bytes.

    Counted is all that the process holds in memory at the worst moment of the job, beyond what it
    held before: what every library allocates, its scratch space and caches too, and those pages of
    memory-mapped files that were read. Not counted are Python and the toolkit itself, what
    `prepare` did and left, swap, and processes that the job starts. Linux itself counts to within
    some hundred kB.

    The process is a new one (not a fork, whose heap has free space that would hide what the job
    takes), so that both functions must be importable: module-level ones, or `functools.partial` of
    them. It starts in about two seconds, with the same thread count.

    Args:
        job: Is called with what `prepare` gave, or with nothing.
        prepare: Makes what shall not count: inputs, imports, a first run in small.

    Raises:
        Exception: What the job raised.
    """
    measure = partial(_measure, job, prepare, torch.get_num_threads())
    return run_in_fresh_process(measure, keep_memory=False)


def process_peak(job: Callable[[], object]) -> int:
    """Run a job in a fresh process and give the peak of all that it holds, in bytes.

    Unlike `resident_peak` it counts Python, the toolkit and what the job imports.

    Args:
        job: As there.

    Raises:
        Exception: What the job raised.
    """
    measure = partial(_measure_all, job, torch.get_num_threads())
    return run_in_fresh_process(measure, keep_memory=False)


def _measure_all(job: Callable[[], object], threads: int) -> int:
    set_threads(threads)
    job()
    return peak_of_this_process()


def _measure(job: Callable[..., object], prepare: Callable[[], object] | None, threads: int) -> int:
    set_threads(threads)
    given: tuple[Any, ...] = () if prepare is None else (prepare(),)
    before = _forget_peak()
    job(*given)
    return max(peak_of_this_process() - before, 0)


def _forget_peak() -> int:
    """Set the peak back to what is held now, where the system can, and give it in bytes."""
    with contextlib.suppress(OSError):  # then only what rises above the peak so far is seen
        _CLEAR.write_text("5")
    return peak_of_this_process()


def peak_of_this_process() -> int:
    """Give the peak resident memory of this process, in bytes."""
    if _STATUS.exists():
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
