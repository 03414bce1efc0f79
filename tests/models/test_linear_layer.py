"""The layer against torch's own, and towers whose batches are filled up."""

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from recsys.models import ItemTowerSpec
from recsys.models.linear_layer import Linear
from recsys.models.towers import Combine

SHAPES = [(70, 64), (3, 40, 64), (1, 64), (0, 64), (64,)]


def make_layers(*, bias: bool = True) -> tuple[Linear, nn.Linear]:
    torch.manual_seed(0)
    layer = Linear(64, 300, bias=bias)
    torch.manual_seed(0)
    return layer, nn.Linear(64, 300, bias=bias)


def make_rows(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


def gradients(module: nn.Module, inputs: Tensor) -> list[Tensor]:
    """Give the outputs, and the gradients of their squares by inputs and parameters."""
    leaf = inputs.clone().requires_grad_()
    outputs = module(leaf)
    leaves = (leaf, *module.parameters())
    return [outputs.detach(), *torch.autograd.grad(outputs.square().sum(), leaves)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bias", [True, False])
def test_has_the_values_and_gradients_of_torchs_layer(shape: tuple[int, ...], bias: bool) -> None:
    layer, plain = make_layers(bias=bias)
    assert layer.state_dict().keys() == plain.state_dict().keys()
    for found, expected in zip(
        gradients(layer, make_rows(*shape)), gradients(plain, make_rows(*shape)), strict=True
    ):
        assert_close(found, expected, rtol=1e-5, atol=1e-4)  # sums of up to 300 products near 10


def test_gives_the_same_bits_as_torchs_where_nothing_is_learned() -> None:
    layer, plain = make_layers()
    with torch.no_grad():
        assert torch.equal(layer(make_rows(70, 64)), plain(make_rows(70, 64)))


def test_obeys_autocast_and_other_precisions() -> None:
    layer, _ = make_layers()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(make_rows(70, 64)).dtype == torch.bfloat16
    assert layer.double()(make_rows(70, 64).double()).dtype == torch.float64


def make_combine(*, norm: str = "none", dropout: float = 0.0) -> Combine:
    torch.manual_seed(0)
    return Combine(ItemTowerSpec(hidden=(32,), norm=norm, dropout=dropout), 2, 64)


@pytest.mark.parametrize("norm", ["none", "layer_norm", "batch_norm"])
@pytest.mark.parametrize("num_rows", [64, 70])
def test_filling_a_batch_up_changes_nothing(norm: str, num_rows: int) -> None:
    combine = make_combine(norm=norm)
    pieces = [make_rows(num_rows, 64), make_rows(num_rows, 64) + 1]
    outputs = combine(pieces)
    assert_close(outputs, combine.layers(pieces[0] + pieces[1]))
    found = torch.autograd.grad(outputs.square().sum(), list(combine.parameters()))
    plain = combine.layers(pieces[0] + pieces[1])
    expected = torch.autograd.grad(plain.square().sum(), list(combine.parameters()))
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_dropout_draws_for_the_rows_of_the_batch_alone() -> None:
    combine, rows = make_combine(dropout=0.5), make_rows(70, 64)
    torch.manual_seed(3)
    dropped = combine([rows, rows])
    after = torch.rand(1)
    torch.manual_seed(3)
    assert_close(dropped, combine.layers(2 * rows))
    assert torch.equal(after, torch.rand(1))
