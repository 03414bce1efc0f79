"""The layers on top of a tower."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from recsys.models.mlp import BatchNorm, build_mlp


def test_no_hidden_layer_of_the_same_width_leaves_the_input_as_it_is() -> None:
    inputs = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    layers = build_mlp(4, (), 4, norm="none", dropout=0.5)
    assert torch.equal(layers(inputs), inputs)


@pytest.mark.parametrize(
    ("input_dim", "hidden", "expected"),
    [
        (6, (), [(6, 4)]),
        (4, (8,), [(4, 8), (8, 4)]),
        (6, (8, 5), [(6, 8), (8, 5), (5, 4)]),
    ],
)
def test_linear_layers_lead_from_width_to_width(
    input_dim: int, hidden: tuple[int, ...], expected: list[tuple[int, int]]
) -> None:
    layers = build_mlp(input_dim, hidden, 4, norm="layer_norm", dropout=0.1)
    widths = [(la.in_features, la.out_features) for la in layers if isinstance(la, nn.Linear)]
    assert widths == expected
    assert layers(torch.zeros(2, input_dim)).shape == (2, 4)


def test_hidden_layers_are_not_linear() -> None:
    torch.manual_seed(0)
    layers = build_mlp(2, (16,), 2, norm="none", dropout=0.0)
    inputs = torch.ones(1, 2)
    there, back, middle = layers(inputs), layers(-inputs), layers(0 * inputs)
    assert not torch.allclose(there + back, 2 * middle, atol=1e-3)


def test_batch_norm_takes_a_training_batch_of_one_row() -> None:
    norm = BatchNorm(3)
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    inputs = torch.tensor([[1.0, -2.0, 3.0]])
    # Running mean 0 and variance 1 leave the row as it is, but for the 1e-5 beside the variance.
    assert_close(norm(inputs), inputs / (1 + 1e-5) ** 0.5)
    assert norm.training
    assert norm.inner.training
    assert all(torch.equal(value, before[name]) for name, value in norm.state_dict().items())


def test_batch_norm_of_more_rows_centres_them_and_learns_the_statistics() -> None:
    norm = BatchNorm(1)
    outputs = norm(torch.tensor([[1.0], [3.0]]))
    assert_close(outputs, torch.tensor([[-1.0], [1.0]]), rtol=0, atol=1e-4)
    assert_close(norm.inner.running_mean, torch.tensor([0.2]))  # a tenth of the way from 0 to 2
