"""A job in a process of its own, whose allocator is as it comes or keeps its memory."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

_Result = TypeVar("_Result")

# glibc gives large blocks back to the system as soon as they are free, and every new one begins
# with page faults. These variables make it keep them; it reads them when a process starts.
_KEPT = {"MALLOC_TRIM_THRESHOLD_": str(2**40), "MALLOC_MMAP_THRESHOLD_": str(2**40)}
_DEFAULT = dict.fromkeys((*_KEPT, "MALLOC_TOP_PAD_", "GLIBC_TUNABLES"))


def run_in_fresh_process(job: Callable[[], _Result], *, keep_memory: bool) -> _Result:
    """Run a job in a new process, with the same thread count, and give what it gives.

    Ctrl-C, which reaches both processes, is this one's to answer: the other one is ended by it, and
    so it is by whatever else is raised here.

    Args:
        job: Importable: a module-level function, or `functools.partial` of one.
        keep_memory: Whether malloc keeps what is freed, so that it is not new to the process when
            it is needed again (on Linux with glibc; elsewhere nothing changes). If not, it is as
            it comes, whatever this process was started with.

    Raises:
        Exception: What the job raised.
    """
    context = multiprocessing.get_context("spawn")
    with (
        _environment(_DEFAULT | (_KEPT if keep_memory else {})),
        ProcessPoolExecutor(1, mp_context=context) as executor,
    ):
        others = set(multiprocessing.active_children())
        with _interrupts_held():
            future = executor.submit(_run, job, torch.get_num_threads())
        try:
            return future.result()
        except BaseException:  # the executor would wait for the job
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
            raise


def _run(job: Callable[[], _Result], threads: int) -> _Result:
    torch.set_num_threads(threads)
    return job()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold SIGINT back; a process that is started meanwhile never gets it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Set variables of the environment, None removes one, and set them back."""
    before = {name: os.environ.get(name) for name in variables}
    _set(variables)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
