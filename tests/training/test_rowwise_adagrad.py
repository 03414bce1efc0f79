"""Row-wise Adagrad against values worked by hand, and the rows that it leaves alone."""

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from recsys.foundations import ArgumentError
from recsys.training.rowwise_adagrad import RowwiseAdagrad


def make_table(rows: int = 4) -> nn.Parameter:
    return nn.Parameter(torch.ones(rows, 2))


def make_gradient(rows: list[int], values: list[list[float]], size: int = 4) -> Tensor:
    return torch.sparse_coo_tensor(
        torch.tensor([rows]), torch.tensor(values), (size, 2), check_invariants=True
    )


def test_two_steps_by_hand() -> None:
    # Row 1, gradient (3, 4): mean square 12.5, step 0.1 * g / sqrt(12.5). Then (1, 1): sum 13.5.
    table = make_table()
    optimizer = RowwiseAdagrad([table], learning_rate=0.1, eps=0.0)
    table.grad = make_gradient([1], [[3.0, 4.0]])
    optimizer.step()
    expected = torch.tensor([1.0, 1.0]) - 0.1 * torch.tensor([3.0, 4.0]) / 12.5**0.5
    assert_close(table[1].detach(), expected)
    table.grad = make_gradient([1], [[1.0, 1.0]])
    optimizer.step()
    assert_close(table[1].detach(), expected - 0.1 / 13.5**0.5)
    assert torch.equal(table[[0, 2, 3]].detach(), torch.ones(3, 2))


def test_adds_up_the_repeats_of_a_row_before_squaring() -> None:
    repeated, single = make_table(), make_table()
    repeated.grad = make_gradient([2, 2], [[1.0, 0.0], [2.0, 4.0]])
    single.grad = make_gradient([2], [[3.0, 4.0]])
    for table in (repeated, single):
        RowwiseAdagrad([table], learning_rate=0.1).step()
    assert torch.equal(repeated, single)


def test_weight_decay_acts_on_touched_rows_only() -> None:
    # Row 0 with gradient 0: g = 0.5 * 1 = 0.5 in each place, mean square 0.25, step 0.1 * 1.
    table = make_table()
    table.grad = make_gradient([0], [[0.0, 0.0]])
    RowwiseAdagrad([table], learning_rate=0.1, weight_decay=0.5).step()
    assert_close(table[0].detach(), torch.tensor([0.9, 0.9]))
    assert torch.equal(table[1:].detach(), torch.ones(3, 2))


def test_a_row_of_zero_gradient_stays() -> None:
    table = make_table()
    table.grad = make_gradient([0], [[0.0, 0.0]])
    RowwiseAdagrad([table], learning_rate=0.1).step()
    assert torch.equal(table.detach(), torch.ones(4, 2))


def test_a_dense_gradient_gives_what_the_same_sparse_one_gives() -> None:
    dense, sparse = make_table(), make_table()
    gradient = make_gradient([1, 3], [[3.0, 4.0], [1.0, -1.0]])
    dense.grad, sparse.grad = gradient.to_dense(), gradient
    for table in (dense, sparse):
        RowwiseAdagrad([table], learning_rate=0.1).step()
    assert_close(dense, sparse)


def test_the_initial_accumulator_dampens_the_first_step() -> None:
    # Mean square 1 + accumulator 3: step 0.1 / 2.
    table = make_table()
    table.grad = make_gradient([0], [[1.0, 1.0]])
    RowwiseAdagrad([table], learning_rate=0.1, eps=0.0, initial_accumulator=3.0).step()
    assert_close(table[0].detach(), torch.tensor([0.95, 0.95]))


def test_updates_a_table_of_one_number_a_row() -> None:
    biases = nn.Parameter(torch.zeros(3))
    biases.grad = torch.sparse_coo_tensor(
        torch.tensor([[2]]), torch.tensor([-4.0]), (3,), check_invariants=True
    )
    RowwiseAdagrad([biases], learning_rate=0.1).step()
    assert_close(biases.detach(), torch.tensor([0.0, 0.0, 0.1]))


def test_resumes_from_its_state_with_the_same_bytes() -> None:
    straight, resumed = make_table(), make_table()
    gradients = [make_gradient([1, 2], [[1.0, 2.0], [3.0, 4.0]]), make_gradient([1], [[2.0, 1.0]])]
    optimizer = RowwiseAdagrad([straight], learning_rate=0.1)
    first = RowwiseAdagrad([resumed], learning_rate=0.1)
    straight.grad = resumed.grad = gradients[0]
    optimizer.step()
    first.step()
    second = RowwiseAdagrad([resumed], learning_rate=0.7)
    second.load_state_dict(first.state_dict())
    straight.grad = resumed.grad = gradients[1]
    optimizer.step()
    second.step()
    assert torch.equal(straight, resumed)


def test_has_its_whole_state_from_the_start_one_number_a_row() -> None:
    state = RowwiseAdagrad([make_table(7)], learning_rate=0.1).state_dict()["state"]
    assert {name: value.shape for name, value in state[0].items()} == {"sum": (7,)}


def test_passes_over_a_table_without_a_gradient_and_returns_the_closures_value() -> None:
    table = make_table()
    optimizer = RowwiseAdagrad([table], learning_rate=0.1)
    assert optimizer.step(lambda: 3.0) == 3.0
    assert torch.equal(table.detach(), torch.ones(4, 2))


@pytest.mark.parametrize("name", ["weight_decay", "eps", "initial_accumulator"])
def test_refuses_negative_numbers(name: str) -> None:
    with pytest.raises(ArgumentError, match=f"`{name}` must not be negative, got -1"):
        RowwiseAdagrad([make_table()], learning_rate=0.1, **{name: -1.0})


def test_refuses_a_learning_rate_that_is_not_above_zero() -> None:
    with pytest.raises(ArgumentError, match="`learning_rate` must be above 0, got 0"):
        RowwiseAdagrad([make_table()], learning_rate=0)
