"""Jobs in threads: the same results in the same order, and BLAS as it was before."""

import threading
import time
from collections.abc import Iterator

import pytest
import torch
from threadpoolctl import ThreadpoolController, threadpool_limits

from recsys.foundations import (
    map_in_threads,
    num_threads,
    one_blas_thread,
    operator_threads,
    set_threads,
    thread_bound,
)


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before, bound = torch.get_num_threads(), thread_bound()
    set_threads(2)
    yield
    set_threads(bound or before)


def blas_threads() -> set[int]:
    """Give the threads of NumPy's BLAS: other packages may bring, and load later, one of their own.

    Where NumPy takes that of the system, all there are count.
    """
    pools = ThreadpoolController().select(user_api="blas").info()
    assert pools, "NumPy brings a BLAS library"
    own = [pool for pool in pools if "numpy" in pool["filepath"]]
    return {pool["num_threads"] for pool in own or pools}


@pytest.mark.parametrize("threads", [1, 2])
def test_gives_the_results_in_the_order_of_the_parts(threads: int) -> None:
    def square_slowly(number: int) -> int:
        time.sleep(0.002 * (9 - number))  # the first part is the last to end
        return number * number

    set_threads(threads)
    assert num_threads() == threads
    assert map_in_threads(square_slowly, list(range(9))) == [i * i for i in range(9)]
    assert map_in_threads(square_slowly, []) == []


def test_where_operators_keep_to_one_thread_parts_have_all() -> None:
    both = threading.Barrier(2)
    with operator_threads(1):  # as a training step that searches an index
        # Two threads at once get past the barrier, one alone does not.
        assert map_in_threads(lambda _: both.wait(timeout=10) in (0, 1), [0, 1]) == [True, True]


def test_each_thread_has_one_thread_of_blas_which_has_its_own_number_again_afterwards() -> None:
    with threadpool_limits(2):
        inside = map_in_threads(lambda _: blas_threads(), range(4))
        assert inside == [{1}] * 4
        assert blas_threads() == {2}
        assert map_in_threads(lambda _: blas_threads(), range(1)) == [{2}]  # nothing is started


def test_callers_at_the_same_time_restore_blas_once_all_are_done() -> None:
    both = threading.Barrier(2)

    def wait_for_the_other(part: int) -> set[int]:
        if part == 0:
            both.wait(timeout=10)  # both callers are inside
        return blas_threads()

    found: list[list[set[int]]] = []
    with threadpool_limits(2):
        callers = [
            threading.Thread(
                target=lambda: found.append(map_in_threads(wait_for_the_other, [0, 1]))
            )
            for _ in range(2)
        ]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert blas_threads() == {2}
    assert len(found) == 2


def test_an_error_in_a_thread_reaches_the_caller_and_blas_is_restored() -> None:
    def fail(part: int) -> int:
        if part == 1:
            raise ValueError("part 1 is bad")
        return part

    with threadpool_limits(2):
        with pytest.raises(ValueError, match="part 1 is bad"):
            map_in_threads(fail, range(3))
        assert blas_threads() == {2}


def test_blas_is_held_at_one_thread_for_a_while_where_more_are_allowed() -> None:
    with threadpool_limits(2):
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {2}
        set_threads(1)
        with threadpool_limits(2), one_blas_thread():  # one is the bound: nothing is to be held
            assert blas_threads() == {2}
