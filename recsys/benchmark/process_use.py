"""What a job takes of a process of its own: core-seconds, time and memory."""

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from recsys.benchmark.fresh_process import run_in_fresh_process
from recsys.benchmark.resident_memory import peak_of_this_process
from recsys.foundations import set_threads


@dataclass(frozen=True)
class ProcessUse:
    """What a job took.

    Attributes:
        core_seconds: Of user and system time, of all threads.
        seconds: By the clock.
        peak_bytes: Most resident memory of the process, Python and the toolkit among it.
    """

    core_seconds: float
    seconds: float
    peak_bytes: int


def process_use(job: Callable[[], object], *, threads: int) -> ProcessUse:
    """Run a job in a new process; the start of Python and its imports count in memory alone.

    Args:
        job: Importable: a module-level function, or `functools.partial` of one.
        threads: Of every library in the process.

    Raises:
        Exception: What the job raised.
    """
    return run_in_fresh_process(partial(_measure, job, threads), keep_memory=False)


def _measure(job: Callable[[], object], threads: int) -> ProcessUse:
    set_threads(threads)
    core_seconds, started = _core_seconds(), time.perf_counter()
    job()
    seconds = time.perf_counter() - started
    return ProcessUse(_core_seconds() - core_seconds, seconds, peak_of_this_process())


def _core_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
