"""Jobs in threads of torch's own: results, the number of threads inside and afterwards, errors."""

import multiprocessing
import os
import threading
import time
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from recsys.foundations import (
    Ahead,
    map_in_torch_threads,
    num_threads,
    operator_threads,
    set_threads,
    thread_bound,
    threads,
)


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[None]:
    before, bound = torch.get_num_threads(), thread_bound()
    set_threads(3)
    yield
    set_threads(bound or before)


def test_gives_the_results_in_the_order_of_the_parts_each_from_a_thread_of_its_own() -> None:
    all_there = threading.Barrier(3)

    def square(number: int) -> tuple[int, int]:
        all_there.wait(timeout=10)  # only three threads at once get past it
        time.sleep(0.002 * (2 - number))  # the first part is the last to end
        return number * number, threading.get_ident()

    results = map_in_torch_threads(square, [0, 1, 2])
    assert [square for square, _ in results] == [0, 1, 4]
    assert results[0][1] == threading.get_ident()
    assert len({thread for _, thread in results}) == 3


def test_parts_may_be_more_than_threads_or_none() -> None:
    assert map_in_torch_threads(lambda number: -number, list(range(10))) == [-i for i in range(10)]
    assert map_in_torch_threads(lambda number: -number, []) == []


def test_operators_of_a_part_keep_to_its_thread_and_the_caller_has_all_again() -> None:
    assert map_in_torch_threads(lambda _: torch.get_num_threads(), range(3)) == [1, 1, 1]
    assert torch.get_num_threads() == 3
    counts: list[int] = []
    later = threading.Thread(target=lambda: counts.append(torch.get_num_threads()))
    later.start()
    later.join()
    assert counts == [3]  # threads that start afterwards have all, too


def test_the_number_of_parts_worth_making_is_the_bound_whatever_operators_take() -> None:
    assert num_threads() == 3
    with operator_threads(1):
        assert torch.get_num_threads() == 1
        assert num_threads() == 3
    assert torch.get_num_threads() == 3
    assert map_in_torch_threads(lambda _: num_threads(), range(3)) == [1, 1, 1]
    assert num_threads() == 3


def test_without_a_bound_the_parts_are_as_many_as_operators_took_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "_bound", None)
    with operator_threads(1), operator_threads(2):
        assert num_threads() == 3
    assert num_threads() == 3


def test_operators_have_their_threads_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="stop"), operator_threads(2):
        raise ValueError("stop")
    assert torch.get_num_threads() == 3


def test_no_part_records_a_gradient() -> None:
    weight = torch.ones(2, requires_grad=True)
    results = map_in_torch_threads(lambda factor: weight * factor, [1.0, 2.0, 3.0])
    assert [result.requires_grad for result in results] == [False] * 3
    assert not Ahead(lambda: weight * 2).get().requires_grad
    assert torch.is_grad_enabled()


def test_parts_write_to_what_the_caller_made_in_inference_mode() -> None:
    with torch.inference_mode():
        found = torch.zeros(3)

        def write(place: int) -> Tensor:
            found[place] = place
            return torch.ones(())

        made = [*map_in_torch_threads(write, [0, 1, 2]), Ahead(lambda: write(1)).get()]
    assert found.tolist() == [0, 1, 2]
    assert all(value.is_inference() for value in made)


@pytest.mark.parametrize("bad", [0, 2])
def test_an_error_is_raised_once_all_parts_have_ended(bad: int) -> None:
    ended = []

    def fail(part: int) -> None:
        if part == bad:
            raise ValueError(f"part {part} is bad")
        time.sleep(0.02)
        ended.append(part)

    with pytest.raises(ValueError, match=f"part {bad} is bad"):
        map_in_torch_threads(fail, [0, 1, 2])
    assert sorted(ended) == [part for part in range(3) if part != bad]
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize("number", [1, 2])
def test_what_is_computed_ahead_is_there_once_or_its_error(number: int) -> None:
    set_threads(number)
    calls: list[int] = []

    def compute() -> int:
        calls.append(threading.get_ident())
        return 7

    ahead = Ahead(compute)
    assert ahead.get() == 7
    assert (calls == [threading.get_ident()]) == (number == 1)

    def fail() -> int:
        raise ValueError("no rows")

    with pytest.raises(ValueError, match="no rows"):
        Ahead(fail).get()


def _in_child(found: "multiprocessing.Queue[list[int]]") -> None:
    found.put(map_in_torch_threads(lambda number: number + 1, [1, 2, 3]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    map_in_torch_threads(lambda number: number, [1, 2, 3])  # threads that the child will not have
    context = multiprocessing.get_context("fork")
    found = context.Queue()
    child = context.Process(target=_in_child, args=(found,))
    child.start()
    assert found.get(timeout=30) == [2, 3, 4]
    child.join(timeout=30)
    assert child.exitcode == 0
