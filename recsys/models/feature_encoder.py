"""Columns of features as vectors.

Dimensions: B rows, V width of a pre-computed vector, D embedding width.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from recsys.data import FeatureSpec, FeatureTable
from recsys.foundations import ArgumentError, Ragged
from recsys.models.embeddings import EmbeddingTable


class FeatureEncoder(nn.Module):
    """Turn each feature of a row into a vector.

    - categorical, bucket: a learned vector a value; row 0 stands for an unknown one.
    - multi, text: the mean of the values' vectors; for an empty list row 0 (multi) or one row more
      than there are hash buckets (text).
    - numeric: the standardised value times a learned vector; another learned one for a missing
      value.
    - vector: a linear layer; a missing vector is zeros.

    Training treats a share of the features as missing, each by itself, so that what stands for a
    missing one is trained as well. In the lists it leaves a share of the values out and divides the
    others by what is left, so that the expected vector of a list is the one without; a list that
    loses all of its values is zeros.

    Args:
        specs: The features read, in order.
        dim: D.
        dropout: Share of the features that training treats as missing.
        value_dropout: Share of the values of a list (multi, text) that training leaves out.
        init_std: Standard deviation of the first values of learned vectors.
        sparse: Whether the gradients of embedding tables are sparse.
    """

    def __init__(
        self,
        specs: list[FeatureSpec],
        dim: int,
        *,
        dropout: float,
        value_dropout: float,
        init_std: float,
        sparse: bool,
    ) -> None:
        super().__init__()
        self.names = [spec.name for spec in specs]
        self.dropout = dropout
        self.encoders = nn.ModuleList(
            _build_encoder(spec, dim, value_dropout, init_std=init_std, sparse=sparse)
            for spec in specs
        )

    def forward(self, features: FeatureTable, device: torch.device) -> list[Tensor]:
        """Encode B rows: one [B, D] for each feature."""
        encoded = []
        for name, encoder in zip(self.names, self.encoders, strict=True):
            missing = torch.zeros(len(features), dtype=torch.bool, device=device)
            if self.training and self.dropout > 0:
                missing = torch.rand(missing.shape, device=device) < self.dropout
            encoded.append(encoder(features.columns[name], missing))
        return encoded


class CategoryEncoder(nn.Module):
    """One learned vector a value."""

    def __init__(self, table: EmbeddingTable) -> None:
        super().__init__()
        self.table = table

    def forward(self, column: NDArray[Any] | Tensor, missing: Tensor) -> Tensor:
        """Look [B] integers up: [B, D]."""
        rows = to_tensor(column, missing.device, torch.int64)
        return self.table(rows.masked_fill(missing, 0))  # type: ignore[no-any-return]


class BagEncoder(nn.Module):
    """The mean of the learned vectors of a list's values; one row stands for an empty list."""

    def __init__(self, table: EmbeddingTable, *, empty_row: int, dropout: float) -> None:
        super().__init__()
        self.table, self.empty_row, self.dropout = table, empty_row, dropout

    def forward(self, column: Ragged, missing: Tensor) -> Tensor:
        """Pool B lists of integers: [B, D]."""
        lengths = to_tensor(column.lengths, missing.device, torch.int64)  # [B]
        rows = to_tensor(column.rows, missing.device, torch.int64)
        kept = torch.where(missing, 0, lengths)
        # A row left out here is not looked up at all, so its vector gets no gradient.
        rows = rows[torch.repeat_interleave(~missing, lengths)]
        weights, counts = torch.repeat_interleave(1 / kept, kept), kept
        if self.training and self.dropout > 0:
            stays = torch.rand(rows.shape, device=rows.device) >= self.dropout
            owners = torch.repeat_interleave(kept)[stays]
            counts = owners.bincount(minlength=len(kept))
            rows, weights = rows[stays], weights[stays] / (1 - self.dropout)
        pooled = self.table.bag(rows, counts.cumsum(dim=0) - counts, weights)  # [B, D]
        empty = self.table(torch.tensor([self.empty_row], device=missing.device))  # [1, D]
        return torch.where((kept == 0)[:, None], empty, pooled)


class NumberEncoder(nn.Module):
    """A number along one learned direction; another learned vector where it is missing."""

    def __init__(self, dim: int, *, init_std: float) -> None:
        super().__init__()
        self.direction = nn.Parameter(torch.randn(dim) * init_std)
        self.missing = nn.Parameter(torch.randn(dim) * init_std)

    def forward(self, column: NDArray[Any] | Tensor, missing: Tensor) -> Tensor:
        """Encode [B] numbers, NaN where missing: [B, D]."""
        values = to_tensor(column, missing.device, torch.float32)
        missing = missing | values.isnan()
        values = values.masked_fill(missing, 0.0)  # NaN times a zero gradient would be NaN
        return torch.where(missing[:, None], self.missing, values[:, None] * self.direction)


class VectorEncoder(nn.Module):
    """A pre-computed vector through a linear layer."""

    def __init__(self, width: int, dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, dim)

    def forward(self, column: NDArray[Any] | Tensor, missing: Tensor) -> Tensor:
        """Encode [B, V] numbers, zeros where missing: [B, D]."""
        values = to_tensor(column, missing.device, torch.float32)
        return self.linear(values.masked_fill(missing[:, None], 0.0))  # type: ignore[no-any-return]


def to_tensor(array: NDArray[Any] | Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Bring an array to a device; a read-only one (of a mapped file) is copied first."""
    if isinstance(array, Tensor):  # while a graph is traced
        return array.to(device=device, dtype=dtype)
    writable = array if array.flags.writeable else np.array(array)
    return torch.from_numpy(np.ascontiguousarray(writable)).to(device=device, dtype=dtype)


def _build_encoder(
    spec: FeatureSpec, dim: int, value_dropout: float, *, init_std: float, sparse: bool
) -> nn.Module:
    def table(num_rows: int) -> EmbeddingTable:
        return EmbeddingTable(num_rows, dim, init_std=init_std, sparse=sparse)

    match spec.kind:
        case "categorical" | "bucket":
            return CategoryEncoder(table(spec.size))
        case "multi":
            return BagEncoder(table(spec.size), empty_row=0, dropout=value_dropout)
        case "text":
            return BagEncoder(table(spec.size + 1), empty_row=spec.size, dropout=value_dropout)
        case "numeric":
            return NumberEncoder(dim, init_std=init_std)
        case "vector":
            return VectorEncoder(spec.size, dim)
    raise ArgumentError(f"Feature `{spec.name}` is of the unknown kind {spec.kind!r}.")
