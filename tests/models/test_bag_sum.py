"""Bag sums against a loop, and their sparse gradient against torch's dense one."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.models.bag_sum import bag_sum

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
    sums, expected = bag_sum(fast, rows, offsets, weights), slow_bag_sum(slow, bags, weights)
    assert_close(sums, expected)
    gradient = torch.arange(sums.numel(), dtype=torch.float32).reshape(sums.shape) + 1
    torch.autograd.backward(sums, gradient)
    torch.autograd.backward(expected + 0 * slow.sum(), gradient)
    assert fast.grad is not None
    assert slow.grad is not None
    assert_close(fast.grad.to_dense(), slow.grad)


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
