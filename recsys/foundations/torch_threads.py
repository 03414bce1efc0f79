"""Threads that each do a part of a job with torch, every operator in one thread."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Generic, ParamSpec, TypeVar

import torch

from recsys.foundations.threads import thread_bound

Part = TypeVar("Part")
Result = TypeVar("Result")
Given = ParamSpec("Given")


def num_threads() -> int:
    """Give the threads that a job may be split over, whatever an operator takes.

    They are those of `set_threads`; without it torch's own, as they were before
    `operator_threads`. Within a part of such a job it is 1.
    """
    return _HERE.threads or thread_bound() or torch.get_num_threads()


def map_in_torch_threads(job: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """Do a job for each part, each in a thread of its own, the first in the caller's.

    For parts of some hundred microseconds or more that are chains of operators: torch cuts each
    operator by itself, and wakes and awaits its threads each time; here that is done once. No
    gradient is recorded. Where there is one thread or one part, nothing is started.

    For tensors on a CPU: a thread does not know which stream of a device the caller works on.

    Args:
        job: What is done; it may not depend on which thread runs it.
        parts: What it is done for, at best as many as `num_threads` says.

    Returns:
        The results, in the order of the parts.
    """
    job, threads = _without_gradient(job), min(num_threads(), len(parts))
    if threads <= 1:
        return [job(part) for part in parts]
    others = [_POOL.submit(threads - 1, job, part) for part in parts[1:]]
    try:
        with operator_threads(1):
            _HERE.threads = 1  # until the block ends
            first = job(parts[0])
    finally:
        wait(others)  # they write where the caller goes on
    return [first, *(other.result() for other in others)]


class Ahead(Generic[Result]):
    """What is needed later, computed meanwhile in another thread if there is one.

    Args:
        job: What is computed, of tensors on a CPU that do not change meanwhile; no gradient is
            recorded.
    """

    def __init__(self, job: Callable[[], Result]) -> None:
        self._job, threads = _without_gradient(job), num_threads()
        self._future = _POOL.submit(threads - 1, self._job) if threads > 1 else None

    def get(self) -> Result:
        """Wait for it; without another thread, compute it."""
        return self._job() if self._future is None else self._future.result()


@contextmanager
def operator_threads(number: int) -> Iterator[None]:
    """Have the operators that this thread calls take so many threads each, at least 1."""
    before, outer, jobs = torch.get_num_threads(), _HERE.threads, num_threads()
    try:
        torch.set_num_threads(number)
        _HERE.threads = jobs
        yield
    finally:
        _HERE.threads = outer
        torch.set_num_threads(before)


def _without_gradient(job: Callable[Given, Result]) -> Callable[Given, Result]:
    """Have a job record no gradient, in whichever thread, and be in inference mode if that is on.

    What was made in that mode may be written to in that mode alone.
    """
    inference = torch.is_inference_mode_enabled()

    def run(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        with torch.inference_mode(inference), torch.no_grad():
            return job(*args, **kwargs)

    return run


class _Here(threading.local):
    """What a thread knows: how many threads its jobs may take; None: nobody has said."""

    threads: int | None = None


class _Pool:
    """Threads that stay, as starting them takes as long as a part."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None
        self._size, self._lock = 0, threading.Lock()

    def submit(
        self,
        threads: int,
        job: Callable[Given, Result],
        *args: Given.args,
        **kwargs: Given.kwargs,
    ) -> Future[Result]:
        """Hand a job to a pool of so many threads or more; operators called in one keep to it."""
        with self._lock:  # also while it is handed over: a pool that is too small ends
            if self._executor is None or self._size < threads:
                if self._executor is not None:
                    self._executor.shutdown(wait=False)
                self._executor, self._size = _start(threads), threads
            return self._executor.submit(job, *args, **kwargs)


def _start(threads: int) -> ThreadPoolExecutor:
    executor = ThreadPoolExecutor(threads, thread_name_prefix="torch")
    barrier = threading.Barrier(threads)

    def keep_to_one() -> None:
        _HERE.threads = 1
        torch.get_num_threads()  # the first call of a thread takes over the common number
        barrier.wait()  # so that each thread comes here once
        torch.set_num_threads(1)

    before = torch.get_num_threads()
    try:
        wait([executor.submit(keep_to_one) for _ in range(threads)])
    except BaseException:  # those that were started would wait for the others, also at the end
        barrier.abort()
        executor.shutdown(wait=False)
        raise
    finally:
        # It also is the common number, which threads started later take over.
        torch.set_num_threads(before)
    return executor


def _forget() -> None:
    global _POOL
    _POOL = _Pool()


_HERE = _Here()
_POOL = _Pool()
os.register_at_fork(after_in_child=_forget)  # threads do not live on in a forked process
