"""The items of a history as one vector or several: weighted sums with learned weights.

Dimensions: R histories of L items, n histories in a block of width W, T tokens in a block, M
interests, H heads, D embedding width.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from recsys.models.distance_buckets import NUM_BUCKETS, distance_buckets
from recsys.models.history_blocks import HistoryBlock, cut_compact, cut_dense, in_order
from recsys.models.history_encoder import ItemTable, QueryPlaces, refuse_places

# The last bits of a product of matrices depend on where in memory they begin. With rows of a
# multiple of 16 numbers each matrix of a batch begins alike.
_ALIGNED = 16


class AttentionHistory(nn.Module):
    """Pool the items of a history with weights that are learned from the items and their ages.

    An item x of age a (0: the newest known one) weighs, for each interest and head,

        w = exp(second · tanh(first · norm(x)) + age[a]) · decay^a,

    and the head's share of the vector's dimensions is sum(w · x) / sum(w)^exponent. So it begins
    near the recency-weighted sum, with decay 1 near the plain one, and exponent 1 makes it a mean.
    `age` is learned, one number for each bucket of ages. A history with nothing known is learned
    vectors of its own.

    Items that dropout takes out in training enter neither sum, so that nothing tells what they
    were, and the others keep their age. What is left is divided by (1 - dropout)^(1 - exponent):
    about as long as the whole history's vector, which search has.

    Args:
        dim: D; a multiple of `num_heads`.
        length: Items looked at, the newest ones.
        num_heads: H; each weighs the items for its share of the dimensions.
        num_interests: M.
        decay: In (0, 1].
        exponent: In [0, 1].
        dropout: Share of the items that training takes out.
        init_std: Standard deviation of the first values of the empty history's vectors.

    Source:
        "Controllable multi-interest framework for recommendation", KDD 2020 (ComiRec-SA). Differs:
        heads, the exponent, the decay, buckets of ages in place of position vectors, and items are
        normalised for the weights.
    """

    is_causal = False
    uses_times = False

    def __init__(
        self,
        dim: int,
        *,
        length: int,
        num_heads: int,
        num_interests: int,
        decay: float,
        exponent: float,
        dropout: float,
        init_std: float,
    ) -> None:
        super().__init__()
        self.length, self.num_heads, self.num_interests = length, num_heads, num_interests
        self.exponent, self.dropout, self.log_decay = exponent, dropout, math.log(decay)
        num_weights = num_interests * num_heads
        self.weigh = nn.Sequential(
            nn.LayerNorm(dim), nn.Linear(dim, dim), nn.Tanh(), nn.Linear(dim, num_weights)
        )
        self.ages = nn.Parameter(torch.zeros(NUM_BUCKETS, num_weights))
        self.empty = nn.Parameter(torch.randn(num_interests, dim) * init_std)

    def forward(
        self,
        histories: Tensor,
        known: Tensor,
        table: ItemTable,
        *,
        times: Tensor | None = None,  # noqa: ARG002 - the common call
        places: QueryPlaces | None = None,
    ) -> Tensor:
        """Pool histories; see `HistoryEncoder`."""
        refuse_places(places)
        histories, known = histories[:, : self.length], known[:, : self.length]
        if self.training:
            blocks = cut_compact(histories, known, None)
        else:
            blocks = cut_dense(histories, known, None, length=self.length)
        empty = (~known.any(dim=1)).nonzero().squeeze(1)
        pooled, owners = [self.empty.expand(len(empty), -1, -1)], [empty]
        for block in blocks:
            there = (block.owners >= 0).nonzero().squeeze(1)
            pooled.append(self._pool(block, table).index_select(0, there))
            owners.append(block.owners.index_select(0, there))
        vectors = in_order(pooled, owners)  # [R, M, D]
        return vectors.squeeze(1) if self.num_interests == 1 else vectors

    def _pool(self, block: HistoryBlock, table: ItemTable) -> Tensor:
        """Give the vectors of a block's histories: [n, M, D]."""
        ages = block.ages()
        if self.training and self.dropout > 0:
            kept = (torch.rand(ages.shape, device=ages.device) >= self.dropout).nonzero().squeeze(1)
            block, ages = block.keep(kept), ages.index_select(0, kept)
        vectors = table(block.items)  # [T, D]
        behind, ages = ages < 0, ages.clamp(min=0)
        logits = self.weigh(vectors) + self.ages.index_select(0, distance_buckets(ages))
        logits = (logits + self.log_decay * ages[:, None]).masked_fill(behind[:, None], -math.inf)
        logits = block.spread(logits, filler=-math.inf)  # [n, W, M * H]
        is_empty = logits[:, :, 0].isneginf().all(dim=1)[:, None, None]  # [n, 1, 1]
        logits = logits.masked_fill(is_empty, 0.0)  # a softmax of nothing would be no number
        weights = logits.softmax(dim=1)
        if self.exponent < 1:
            totals = logits.logsumexp(dim=1, keepdim=True)
            weights = weights * torch.exp((1 - self.exponent) * totals)
            if self.training:
                weights = weights / (1 - self.dropout) ** (1 - self.exponent)
        pooled = self._weighted_sum(weights, block.spread(vectors))
        return torch.where(is_empty, self.empty, pooled)

    def _weighted_sum(self, weights: Tensor, vectors: Tensor) -> Tensor:
        """Sum [n, W, D] vectors by [n, W, M * H] weights, a head its dimensions: [n, M, D]."""
        num_rows, width, dim = vectors.shape
        by_head = weights.view(num_rows, width, self.num_interests, self.num_heads)
        parts = vectors.view(num_rows, width, self.num_heads, dim // self.num_heads)
        if parts.shape[3] % _ALIGNED != 0:
            parts = functional.pad(parts, (0, -parts.shape[3] % _ALIGNED))
        sums = by_head.permute(0, 3, 2, 1) @ parts.transpose(1, 2)  # [n, H, M, D / H]
        return sums[..., : dim // self.num_heads].transpose(1, 2).flatten(2)
