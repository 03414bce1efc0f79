"""Both towers as modules whose inputs are tensors alone, in the order of their specification.

Dimensions: B rows, L entries of a history, M interests, D embedding width, E output width.
"""

from typing import cast

import torch
from torch import Tensor, nn

from recsys.export.onnx_causal import PaddedCausal
from recsys.export.onnx_features import PaddedFeatures
from recsys.export.onnx_history import PaddedAttention, PaddedPool
from recsys.export.onnx_inputs import TowerInput
from recsys.export.onnx_ridge import PaddedRidge
from recsys.models import TwoTower
from recsys.models.attention_history import AttentionHistory
from recsys.models.causal_history import CausalHistory
from recsys.models.embeddings import EmbeddingTable
from recsys.models.pooled_history import PooledHistory
from recsys.models.towers import Combine


class UserGraph(nn.Module):
    """The user tower over padded tensors.

    Args:
        model: In evaluation mode, on the CPU.
        inputs: What `forward` takes, in order.
    """

    counted: Tensor

    def __init__(self, model: TwoTower, inputs: list[TowerInput]) -> None:
        super().__init__()
        tower = model.user_tower
        self._spec, self._scaled, self._names = model.spec, model.scaled, [i.name for i in inputs]
        self.rows, self.ids, self.combine = tower.rows, tower.ids, tower.combine
        self.features = PaddedFeatures(tower.features)
        self.context = PaddedFeatures(tower.context)
        self.history: nn.Module | None = None
        self.ridge = None if model.ridge is None else PaddedRidge(model.ridge)
        self._length = model.history_length
        if tower.history is not None:
            every = torch.arange(model.num_history_items)
            self.register_buffer("counted", model.known_to_history(every))  # [N]
            self.register_buffer("trained", model.item_tower.rows.known(every))
            self.history = _padded_history(tower.history, _history_table(model))

    def forward(self, *tensors: Tensor) -> Tensor:
        """Embed users: [B, E], with more interests than one [B, M, E]."""
        given = dict(zip(self._names, tensors, strict=True))
        pieces = [] if self.ids is None else [self.ids(self.rows(given["user_row"]))]
        pieces += self.features([given[f"user.{name}"] for name in self.features.names])
        pieces += self.context([given[f"context.{name}"] for name in self.context.names])
        items, inside = self._items(given)
        if self.history is not None:
            known = inside & self.counted[items]
            read = self.history(items, known, given.get("history_times"))
            pieces = [piece.unsqueeze(1) for piece in pieces] if read.dim() > 2 else pieces
            pieces.append(read)
        vectors = combine(self.combine, pieces)
        parts = [self._scaled(vectors)]
        if self._spec.item_bias:
            parts.append(torch.ones_like(vectors[..., :1]))
        if self.ridge is not None:
            solved = self.ridge(items, inside & self.get_buffer("trained")[items])
            solved = solved if vectors.dim() == 2 else solved[:, None]
            parts.append(solved.expand(*vectors.shape[:-1], solved.shape[-1]))
        return torch.cat(parts, dim=-1)

    def _items(self, given: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Give the rows of a history within the table, and which of them are items: [B, L] each."""
        if self.history is None:
            return torch.zeros(0), torch.zeros(0)
        rows, num_items = given["history"], len(self.counted)
        recent = torch.arange(rows.shape[1]) < self._length  # older entries are not read
        inside = (rows >= 0) & (rows < num_items) & recent
        return torch.where(inside, rows, 0), inside


class ItemGraph(nn.Module):
    """The item tower over padded tensors.

    Args:
        model: In evaluation mode, on the CPU.
        inputs: What `forward` takes, in order.
    """

    def __init__(self, model: TwoTower, inputs: list[TowerInput]) -> None:
        super().__init__()
        tower = model.item_tower
        self._scaled, self._names = model.scaled, [i.name for i in inputs]
        self.rows, self.ids, self.combine = tower.rows, tower.ids, tower.combine
        self.bias, self.ridge = tower.bias, model.ridge
        self.features = PaddedFeatures(tower.features)

    def forward(self, *tensors: Tensor) -> Tensor:
        """Embed items: [B, E]."""
        given = dict(zip(self._names, tensors, strict=True))
        rows = given.get("item_row")
        pieces = []
        if self.ids is not None and rows is not None:
            pieces.append(self.ids(self.rows(rows)))
        pieces += self.features([given[f"item.{name}"] for name in self.features.names])
        parts = [self._scaled(combine(self.combine, pieces))]
        if self.bias is not None and rows is not None:
            parts.append(self.bias(self.rows(rows)))
        if self.ridge is not None and rows is not None:
            parts.append(self.ridge.embed_items(rows))
        return torch.cat(parts, dim=1)


def combine(layers: Combine, pieces: list[Tensor]) -> Tensor:
    """Apply `Combine` to pieces whose shapes are not numbers yet; as it does."""
    if layers.concat:
        widest = max(pieces, key=Tensor.dim)
        combined = torch.cat([piece.expand(*widest.shape[:-1], -1) for piece in pieces], dim=-1)
    else:
        combined = pieces[0]
        for piece in pieces[1:]:
            combined = combined + piece
    if combined.dim() == 2:
        return layers.layers(combined)  # type: ignore[no-any-return]
    many = combined.shape[1]  # M is a number
    return layers.layers(combined.flatten(0, 1)).unflatten(0, (-1, many))  # type: ignore[no-any-return]


def _history_table(model: TwoTower) -> Tensor:
    if model.user_tower.history_table is not None:
        return model.user_tower.history_table.weight
    if model.spec.histories_read_tower:
        return model.keep_history_vectors()
    return cast(EmbeddingTable, model.item_tower.ids).weight  # the specification says so


def _padded_history(
    history: PooledHistory | AttentionHistory | CausalHistory, table: Tensor
) -> nn.Module:
    match history:
        case PooledHistory():
            return PaddedPool(history, table)
        case AttentionHistory():
            return PaddedAttention(history, table)
    return PaddedCausal(history, table)
