"""One thread count for torch, BLAS, OpenMP (FAISS among it) and Arrow."""

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import threadpoolctl
import torch

from recsys.foundations.checks import check_positive
from recsys.foundations.control_group import CGROUP

_bound: int | None = None


def set_threads(num_threads: int) -> None:
    """Bound every pool of the process. Call it after the libraries are imported.

    FAISS's own OpenMP takes the bound for the thread of Python that sets it, and no other; so its
    callers ask for `thread_bound`. The other libraries hold it for all.

    Args:
        num_threads: At least 1.
    """
    global _bound
    check_positive("num_threads", num_threads)
    _bound = num_threads
    torch.set_num_threads(num_threads)
    pa.set_cpu_count(num_threads)
    pa.set_io_thread_count(num_threads)
    threadpoolctl.threadpool_limits(limits=num_threads)


@contextlib.contextmanager
def held_threads(num_threads: int) -> Iterator[None]:
    """Bound torch, BLAS, OpenMP and `thread_bound` for a while, then restore what held before.

    For measurements: the bound is the process's, not this thread's alone. Arrow keeps its own.

    Args:
        num_threads: At least 1.
    """
    global _bound
    check_positive("num_threads", num_threads)
    before, operators = _bound, torch.get_num_threads()
    with threadpoolctl.threadpool_limits(limits=num_threads):
        _bound = num_threads
        torch.set_num_threads(num_threads)
        try:
            yield
        finally:
            _bound = before
            torch.set_num_threads(operators)


def thread_bound() -> int | None:
    """Give what `set_threads` was last told; None: it never was, and libraries do as they like."""
    return _bound


def available_cores() -> int:
    """Count the cores that this process may use: those it is bound to, within its quota."""
    bound = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if bound else os.cpu_count() or 1
    quota = _cpu_quota(CGROUP)
    return cores if quota is None else max(min(cores, math.ceil(quota)), 1)


def _cpu_quota(folder: Path) -> float | None:
    """Give the cores that a container's limit comes to; None: there is no limit."""
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            names = ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")
            quota, period = ((folder / name).read_text().strip() for name in names)
        return float(quota) / float(period) if quota not in ("max", "-1") else None
    except (OSError, ValueError):
        return None
