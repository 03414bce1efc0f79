"""Bag sums and products against a loop, and their sparse gradients against torch's dense ones."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import Ahead
from recsys.models import bag_sum as bag_sums
from recsys.models.bag_sum import bag_dot, bag_sum

bags_of_rows = st.lists(st.lists(st.integers(0, 5), max_size=4), min_size=1, max_size=6)


def make_table() -> Tensor:
    return torch.randn(6, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()


def flatten(bags: list[list[int]]) -> tuple[Tensor, Tensor, Tensor]:
    rows = torch.tensor([row for bag in bags for row in bag], dtype=torch.int64)
    lengths = torch.tensor([len(bag) for bag in bags])
    weights = torch.linspace(0.5, 2.0, len(rows))
    return rows, lengths.cumsum(0) - lengths, weights


def slow_bag_sum(table: Tensor, bags: list[list[int]], weights: Tensor) -> Tensor:
    sums, position = [], 0
    for bag in bags:
        total = torch.zeros(table.shape[1])
        for row in bag:
            total = total + weights[position] * table[row]
            position += 1
        sums.append(total)
    return torch.stack(sums)


@given(bags=bags_of_rows)
def test_values_and_gradient_equal_those_of_a_loop(bags: list[list[int]]) -> None:
    rows, offsets, weights = flatten(bags)
    fast, slow = make_table(), make_table()
    fast_weights, slow_weights = weights.clone().requires_grad_(), weights.requires_grad_()
    sums = bag_sum(fast, rows, offsets, fast_weights)
    expected = slow_bag_sum(slow, bags, slow_weights)
    assert_close(sums, expected)
    gradient = torch.arange(sums.numel(), dtype=torch.float32).reshape(sums.shape) + 1
    torch.autograd.backward(sums, gradient)
    torch.autograd.backward(expected + 0 * (slow.sum() + slow_weights.sum()), gradient)
    assert fast.grad is not None
    assert slow.grad is not None
    assert_close(fast.grad.to_dense(), slow.grad)
    assert_close(fast_weights.grad, slow_weights.grad)


@given(bags=bags_of_rows)
def test_products_and_their_gradients_equal_those_of_a_loop(bags: list[list[int]]) -> None:
    rows, offsets, gradient = flatten(bags)
    fast, slow = make_table(), make_table()
    generator = torch.Generator().manual_seed(1)
    queries = torch.randn(len(bags), 3, generator=generator).requires_grad_()
    copies = queries.detach().clone().requires_grad_()
    dots = bag_dot(fast, rows, offsets, queries)
    owners = [owner for owner, bag in enumerate(bags) for _ in bag]
    expected = (slow[rows] * copies[owners]).sum(dim=1)
    assert_close(dots, expected)
    torch.autograd.backward(dots, gradient)
    torch.autograd.backward(expected, gradient)
    assert fast.grad is not None
    assert slow.grad is not None
    assert fast.grad.is_sparse
    assert_close(fast.grad.to_dense(), slow.grad)
    assert_close(queries.grad, copies.grad)


def test_more_entries_than_are_multiplied_at_once_give_all_products() -> None:
    rows, queries = torch.arange(40_000) % 6, torch.tensor([[1.0, 2.0, 3.0]])
    dots = bag_dot(make_table(), rows, torch.tensor([0]), queries)
    assert_close(dots, (make_table() @ queries[0])[rows])


def test_the_gradient_holds_each_touched_row_once_and_no_other() -> None:
    table = make_table()
    rows, offsets, weights = flatten([[4, 1], [], [1, 1, 4]])
    (gradient,) = torch.autograd.grad(bag_sum(table, rows, offsets, weights).sum(), table)
    assert gradient.is_sparse
    assert gradient.is_coalesced()
    assert gradient.indices().tolist() == [[1, 4]]


def test_the_same_table_in_two_bags_adds_both_gradients() -> None:
    table = make_table()
    rows, offsets, weights = flatten([[0, 2]])
    total = bag_sum(table, rows, offsets, weights) + bag_sum(table, rows[:1], offsets, weights[:1])
    torch.autograd.backward(total.sum())
    assert table.grad is not None
    # Row 0 stands in both with weight 0.5, row 2 in one with weight 2.
    assert_close(table.grad.to_dense()[:, 0], torch.tensor([1.0, 0, 2, 0, 0, 0]))


def test_rows_are_sorted_ahead_for_a_gradient_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[Callable[[], Any]] = []

    def note(job: Callable[[], Any]) -> Ahead[Any]:
        jobs.append(job)
        return Ahead(job)

    monkeypatch.setattr(bag_sums, "Ahead", note)
    rows, offsets, weights = flatten([[1, 2], [2]])
    with torch.no_grad():
        bag_sum(make_table(), rows, offsets, weights)
    with torch.inference_mode():
        bag_sum(make_table(), rows, offsets, weights)
    bag_sum(make_table().detach(), rows, offsets, weights)
    assert not jobs
    bag_sum(make_table(), rows, offsets, weights)
    assert len(jobs) == 1
