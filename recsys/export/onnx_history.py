"""Histories laid out as padded blocks, for graphs: the encoders' own layers, without lists.

The encoders of `recsys.models` cut histories into blocks by length, which a graph of a fixed form
cannot do. Here every history of a batch has the width of the batch; what is not known is masked.

Dimensions: B histories of L entries, M interests, H heads, D embedding width.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from recsys.models.attention_history import AttentionHistory
from recsys.models.distance_buckets import distance_buckets
from recsys.models.pooled_history import PooledHistory


def ages_of(known: Tensor) -> Tensor:
    """Count the known entries [B, L] from the newest, which is 0; of no meaning elsewhere."""
    return known.long().cumsum(dim=1) - 1


def oldest_first(values: Tensor, known: Tensor) -> Tensor:
    """Bring what is known of [B, L], newest first, to the front, oldest first; zeros behind it."""
    places = known.sum(dim=1, keepdim=True) - 1 - ages_of(known)
    num_rows, width = values.shape
    places = torch.where(known, places, width)  # all that is not known: one column more
    block = values.new_zeros(num_rows, width + 1).scatter(1, places, values)
    return block[:, :width]


class PaddedPool(nn.Module):
    """`PooledHistory` over padded blocks.

    Args:
        history: The encoder.
        table: [N, D], the items' vectors.
    """

    def __init__(self, history: PooledHistory, table: Tensor) -> None:
        super().__init__()
        self.history, self.table = history, table

    def forward(self, items: Tensor, known: Tensor, _times: Tensor | None) -> Tensor:
        """Pool histories, [B, L] newest first, at most `length` entries of each known: [B, D]."""
        history = self.history
        counts, ages = known.sum(dim=1), ages_of(known)
        used = known & (ages < history.reach)
        last = history.length - 1
        weights = torch.where(used, history.weights[ages.clamp(0, last)], 0.0)  # [B, L]
        vectors = functional.embedding(items, self.table)  # [B, L, D]
        totals = history.totals[counts][:, None] ** history.exponent
        pooled = (weights[:, None] @ vectors)[:, 0] / totals
        if history.gate is not None:
            gate = history.gate
            keys = functional.embedding(items, gate.keys.weight)  # [B, L, G]
            fits = (keys @ (pooled @ gate.project)[:, :, None])[:, :, 0]
            biases = functional.embedding(items, gate.biases.weight)[:, :, 0]
            weights = weights * (2 * torch.sigmoid(biases + fits))
            pooled = (weights[:, None] @ vectors)[:, 0] / totals
        return torch.where((counts == 0)[:, None], history.empty, pooled)


class PaddedAttention(nn.Module):
    """`AttentionHistory` over padded blocks.

    Args:
        history: The encoder.
        table: [N, D], the items' vectors.
    """

    ages: Tensor

    def __init__(self, history: AttentionHistory, table: Tensor) -> None:
        super().__init__()
        self.history, self.table = history, table
        buckets = distance_buckets(torch.arange(history.length))
        self.register_buffer("ages", history.ages.detach()[buckets])  # [length, M * H]

    def forward(self, items: Tensor, known: Tensor, _times: Tensor | None) -> Tensor:
        """Pool histories, as `PaddedPool` does: [B, D], with more interests than one [B, M, D]."""
        history = self.history
        ages = ages_of(known).clamp(0, history.length - 1)
        vectors = functional.embedding(items, self.table)  # [B, L, D]
        logits = history.weigh(vectors) + self.ages[ages] + history.log_decay * ages[:, :, None]
        logits = logits.masked_fill(~known[:, :, None], -math.inf)  # [B, L, M * H]
        is_empty = ~known.any(dim=1)[:, None, None]  # [B, 1, 1]
        logits = torch.where(is_empty, 0.0, logits)  # a softmax of nothing would be no number
        peaks = logits.amax(dim=1, keepdim=True)
        weights = (logits - peaks).exp()
        sums = weights.sum(dim=1, keepdim=True)
        weights = weights / sums
        if history.exponent < 1:
            weights = weights * torch.exp((1 - history.exponent) * (peaks + sums.log()))
        weights = weights.unflatten(2, (history.num_interests, history.num_heads))
        parts = vectors.unflatten(2, (history.num_heads, -1))  # [B, L, H, D / H]
        pooled = weights.permute(0, 3, 2, 1) @ parts.transpose(1, 2)  # [B, H, M, D / H]
        pooled = torch.where(is_empty, history.empty, pooled.transpose(1, 2).flatten(2))
        return pooled.squeeze(1) if history.num_interests == 1 else pooled
