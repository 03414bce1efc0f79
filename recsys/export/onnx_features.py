"""Features as padded tensors, for graphs.

Dimensions: B rows, V values of the longest list, D embedding width.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from recsys.models.feature_encoder import BagEncoder, CategoryEncoder, FeatureEncoder


class PaddedFeatures(nn.Module):
    """`FeatureEncoder` over one tensor a feature, in the order of its names.

    Args:
        encoder: The encoder.
    """

    def __init__(self, encoder: FeatureEncoder) -> None:
        super().__init__()
        self.names = encoder.names
        self.encoders = nn.ModuleList(map(_padded, encoder.encoders))

    def forward(self, columns: list[Tensor]) -> list[Tensor]:
        """Encode B rows: one [B, D] for each feature."""
        encoded = []
        for encoder, column in zip(self.encoders, columns, strict=True):
            missing = column.new_zeros(column.shape[0], dtype=torch.bool)  # the codes say it
            encoded.append(encoder(column, missing))
        return encoded


class PaddedCategory(nn.Module):
    """`CategoryEncoder` that takes any other code for the unknown value."""

    def __init__(self, encoder: CategoryEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, column: Tensor, missing: Tensor) -> Tensor:
        """Look [B] codes up: [B, D]."""
        inside = (column >= 0) & (column < len(self.encoder.table.weight))
        return self.encoder(column, missing | ~inside)  # type: ignore[no-any-return]


class PaddedBag(nn.Module):
    """`BagEncoder` over padded lists."""

    def __init__(self, encoder: BagEncoder) -> None:
        super().__init__()
        self.table, self.empty_row = encoder.table, encoder.empty_row

    def forward(self, column: Tensor, _missing: Tensor) -> Tensor:
        """Pool [B, V] codes, any other than a value's for none: [B, D]."""
        weight = self.table.weight
        num_values = self.empty_row if self.empty_row > 0 else len(weight)
        there = (column >= 0) & (column < num_values)
        vectors = functional.embedding(torch.where(there, column, 0), weight)  # [B, V, D]
        counts = there.sum(dim=1, keepdim=True)  # [B, 1]
        weights = there / counts.clamp(min=1)
        pooled = (weights[:, None] @ vectors)[:, 0]
        return torch.where(counts == 0, weight[self.empty_row], pooled)


def _padded(encoder: nn.Module) -> nn.Module:
    match encoder:
        case CategoryEncoder():
            return PaddedCategory(encoder)
        case BagEncoder():
            return PaddedBag(encoder)
    return encoder  # of numbers and of vectors: a tensor is all that they need
