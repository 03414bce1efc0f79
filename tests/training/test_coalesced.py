"""Gradients with each row once: what is summed, what is only marked, what is left alone."""

import torch
from torch import Tensor, nn
from torch.testing import assert_close

from recsys.training.coalesced import coalesce_gradients


def make_param(rows: list[int], values: list[float]) -> nn.Parameter:
    """Give a table of 5 rows with a sparse gradient that is not marked."""
    param = nn.Parameter(torch.zeros(5, 1))
    param.grad = torch.sparse_coo_tensor(
        torch.tensor([rows], dtype=torch.int64),
        torch.tensor(values)[:, None],
        (5, 1),
        check_invariants=True,
    )
    assert not param.grad.is_coalesced()
    return param


def gradient_of(param: nn.Parameter) -> Tensor:
    assert param.grad is not None
    return param.grad


def test_rows_that_repeat_are_summed_and_those_out_of_order_sorted() -> None:
    repeated, unordered = make_param([1, 1, 4], [1.0, 2, 5]), make_param([3, 0], [7.0, 8])
    coalesce_gradients([repeated, unordered])
    assert gradient_of(repeated).indices()[0].tolist() == [1, 4]
    assert gradient_of(repeated).values()[:, 0].tolist() == [3, 5]
    assert gradient_of(unordered).indices()[0].tolist() == [0, 3]
    assert gradient_of(unordered).values()[:, 0].tolist() == [8, 7]


def test_rows_that_rise_are_marked_and_nothing_is_copied() -> None:
    param = make_param([0, 2, 3], [1.0, 2, 3])
    values = gradient_of(param)._values()
    coalesce_gradients([param])
    assert gradient_of(param).is_coalesced()
    assert gradient_of(param).values().data_ptr() == values.data_ptr()


def test_a_gradient_of_no_row_stays_one() -> None:
    param = nn.Parameter(torch.zeros(5, 1))
    param.grad = torch.sparse_coo_tensor(
        torch.zeros(1, 0, dtype=torch.int64), torch.zeros(0, 1), (5, 1), check_invariants=True
    )
    coalesce_gradients([param])
    assert gradient_of(param).is_coalesced()
    assert gradient_of(param).values().shape == (0, 1)


def test_dense_gradients_and_missing_ones_are_left_alone() -> None:
    dense, none = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))
    dense.grad = torch.ones(2)
    coalesce_gradients([dense, none])
    assert_close(dense.grad, torch.ones(2))
    assert none.grad is None
