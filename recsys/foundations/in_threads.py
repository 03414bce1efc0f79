"""Several threads of Python that each do a part, with single-threaded BLAS inside."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import threadpoolctl

from recsys.foundations.torch_threads import num_threads

Part = TypeVar("Part")
Result = TypeVar("Result")


def map_in_threads(job: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """Do a job for each part, in as many threads as the setting `threads` says.

    For jobs that spend their time in NumPy calls on large arrays, which let other threads run: one
    BLAS call in many threads leaves all that is between such calls to one. With one thread or one
    part nothing is started, and BLAS keeps its threads.

    Args:
        job: May not depend on which thread runs it.
        parts: What it is done for.

    Returns:
        The results, in the order of the parts.
    """
    threads = min(num_threads(), len(parts))
    if threads <= 1:
        return [job(part) for part in parts]
    with _LIMIT.held(), ThreadPoolExecutor(threads) as pool:
        return list(pool.map(job, parts))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS at one thread for a while, where more are allowed.

    For products of less than a millisecond between work in other threads: those of BLAS would go
    on waiting busily, each on a core that the others need.
    """
    if num_threads() <= 1:
        yield
    else:
        with _LIMIT.held():
            yield


class _OneThreadOfBlas:
    """Holds BLAS at one thread while anybody needs it; the last to leave restores its threads."""

    def __init__(self) -> None:
        self._lock, self._holders = threading.Lock(), 0
        self._limit: Any = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold BLAS at one thread for a while."""
        with self._lock:
            if self._holders == 0:
                self._limit = _pools().limit(limits=1, user_api="blas")
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                if self._holders == 0:
                    self._limit.restore_original_limits()


@cache
def _pools() -> Any:
    # Looking through all libraries takes long: once. NumPy's, which counts, is there by then.
    return threadpoolctl.ThreadpoolController()


_LIMIT = _OneThreadOfBlas()
