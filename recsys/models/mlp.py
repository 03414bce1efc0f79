"""The layers on top of a tower's summed or concatenated pieces.

Dimensions: B rows, D width.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from recsys.models.linear_layer import Linear


class BatchNorm(nn.Module):
    """Batch normalisation that also takes a training batch of one row.

    One row has no variance, so such a batch is normalised by the running statistics and leaves
    them as they are.

    Args:
        dim: D.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.inner = nn.BatchNorm1d(dim)

    def forward(self, inputs: Tensor) -> Tensor:
        """Normalise [B, D] over the batch."""
        if not self.training or len(inputs) > 1:
            return self.inner(inputs)  # type: ignore[no-any-return]
        self.inner.eval()
        outputs: Tensor = self.inner(inputs)
        self.inner.train()
        return outputs


def build_mlp(
    input_dim: int, hidden: Sequence[int], output_dim: int, *, norm: str, dropout: float
) -> nn.Sequential:
    """Build linear layers, each but the last followed by norm, ReLU and dropout.

    Args:
        input_dim: Width of what enters.
        hidden: Width of each hidden layer; empty for none.
        output_dim: Width of what leaves. With no hidden layer and `input_dim` equal to it nothing
            is built and the input leaves as it came; with another width one linear layer is.
        norm: none, layer_norm or batch_norm.
        dropout: Share of the hidden values that training sets to zero.
    """
    layers: list[nn.Module] = []
    width = input_dim
    for next_width in hidden:
        layers.append(Linear(width, next_width))
        if norm == "layer_norm":
            layers.append(nn.LayerNorm(next_width))
        elif norm == "batch_norm":
            layers.append(BatchNorm(next_width))
        layers.append(nn.ReLU(inplace=True))  # what enters is nobody else's
        if dropout > 0:
            layers.append(nn.Dropout(dropout))
        width = next_width
    if hidden or width != output_dim:
        layers.append(Linear(width, output_dim))
    return nn.Sequential(*layers)
