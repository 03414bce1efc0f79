"""Clipping by the norm over dense and sparse gradients together."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from recsys.foundations import ArgumentError, TrainingError
from recsys.training.gradient_clipping import clip_gradients


def make_params() -> tuple[nn.Parameter, nn.Parameter, nn.Parameter]:
    """Give a dense gradient (0, 3), a sparse one whose repeats sum to (4, 0), and none."""
    dense, untouched = (nn.Parameter(torch.zeros(2)) for _ in range(2))
    table = nn.Parameter(torch.zeros(5, 2))
    dense.grad = torch.tensor([0.0, 3.0])
    table.grad = torch.sparse_coo_tensor(
        torch.tensor([[1, 1]]),
        torch.tensor([[1.0, 0.0], [3.0, 0.0]]),
        (5, 2),
        check_invariants=True,
    )
    return dense, table, untouched


def test_scales_all_gradients_together() -> None:
    # The norm is sqrt(3^2 + 4^2) = 5; counted by parts it would be sqrt(9 + 1 + 9).
    dense, table, untouched = make_params()
    assert clip_gradients([dense, table, untouched], max_norm=1.0) == pytest.approx(5)
    assert dense.grad is not None
    assert table.grad is not None
    assert_close(dense.grad, torch.tensor([0.0, 0.6]))
    assert_close(table.grad.to_dense()[1], torch.tensor([0.8, 0.0]))
    assert untouched.grad is None


def test_leaves_a_small_gradient_as_it_is() -> None:
    dense, table, _ = make_params()
    assert clip_gradients([dense, table], max_norm=5.5) == pytest.approx(5)
    assert dense.grad is not None
    assert dense.grad.tolist() == [0, 3]


def test_without_gradients_the_norm_is_zero() -> None:
    assert clip_gradients([nn.Parameter(torch.zeros(2))], max_norm=1.0) == 0


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_refuses_a_gradient_that_is_not_finite(value: float) -> None:
    dense, table, _ = make_params()
    dense.grad = torch.tensor([0.0, value])
    with pytest.raises(TrainingError, match="gradient's norm must be finite"):
        clip_gradients([dense, table], max_norm=1.0)


def test_refuses_a_norm_that_is_not_above_zero() -> None:
    with pytest.raises(ArgumentError, match="`max_norm` must be above 0, got 0"):
        clip_gradients([], max_norm=0.0)
