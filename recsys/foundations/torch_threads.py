"""Threads that each do a part of a job with torch, every operator in one thread."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Generic, TypeVar

import torch

from recsys.foundations.threads import thread_bound

Part = TypeVar("Part")
Result = TypeVar("Result")


def num_torch_threads() -> int:
    """Give the threads that jobs are split over: those of `set_threads`, without it torch's own.

    Within such a job it is 1.
    """
    if getattr(_HERE, "works", False):
        return 1
    return thread_bound() or torch.get_num_threads()


def map_in_torch_threads(job: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """Do a job for each part, each in a thread of its own, the first in the caller's.

    For parts of some hundred microseconds or more that are chains of operators: torch cuts each
    operator by itself, and wakes and awaits its threads each time; here that is done once. No
    gradient is recorded. Where there is one thread or one part, nothing is started.

    Args:
        job: What is done; it may not depend on which thread runs it.
        parts: What it is done for, at best as many as `num_torch_threads` says.

    Returns:
        The results, in the order of the parts.
    """
    job = torch.no_grad()(job)
    threads = min(num_torch_threads(), len(parts))
    if threads <= 1:
        return [job(part) for part in parts]
    others = [_POOL.of(threads - 1).submit(job, part) for part in parts[1:]]
    try:
        with operator_threads(1):
            first = job(parts[0])
    finally:
        wait(others)  # they write where the caller goes on
    return [first, *(other.result() for other in others)]


class Ahead(Generic[Result]):
    """What is needed later, computed meanwhile in another thread if there is one.

    Args:
        job: What is computed, without recording a gradient.
    """

    def __init__(self, job: Callable[[], Result]) -> None:
        self._job = torch.no_grad()(job)
        threads = num_torch_threads()
        self._future = _POOL.of(threads - 1).submit(self._job) if threads > 1 else None

    def get(self) -> Result:
        """Wait for it; without another thread, compute it."""
        return self._job() if self._future is None else self._future.result()


@contextmanager
def operator_threads(number: int) -> Iterator[None]:
    """Have the operators that this thread calls take so many threads each, at least 1."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Pool:
    """Threads that stay, as starting them takes as long as a part."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None
        self._size, self._lock = 0, threading.Lock()

    def of(self, threads: int) -> ThreadPoolExecutor:
        """Give a pool of so many threads or more; operators called in one keep to it."""
        with self._lock:
            if self._executor is None or self._size < threads:
                if self._executor is not None:
                    self._executor.shutdown(wait=False)
                self._executor, self._size = _start(threads), threads
            return self._executor


def _start(threads: int) -> ThreadPoolExecutor:
    executor = ThreadPoolExecutor(threads, thread_name_prefix="torch")
    barrier = threading.Barrier(threads)

    def keep_to_one() -> None:
        _HERE.works = True
        torch.get_num_threads()  # the first call of a thread takes over the common number
        barrier.wait()  # so that each thread comes here once
        torch.set_num_threads(1)

    before = torch.get_num_threads()
    started: list[Future[None]] = [executor.submit(keep_to_one) for _ in range(threads)]
    wait(started)
    # It also is the common number, which threads started later take over.
    torch.set_num_threads(before)
    return executor


def _forget() -> None:
    global _POOL
    _POOL = _Pool()


_HERE = threading.local()
_POOL = _Pool()
os.register_at_fork(after_in_child=_forget)  # threads do not live on in a forked process
