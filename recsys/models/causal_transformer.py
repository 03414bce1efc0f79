"""A transformer in which each item sees itself and the older ones.

Dimensions: T tokens, n histories of width W, H heads, D embedding width.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from recsys.models.distance_buckets import NUM_BUCKETS, distance_buckets
from recsys.models.dropout import Dropout
from recsys.models.history_blocks import HistoryBlock

_EXPANSION = 4  # the feed-forward part's hidden width, in units of D
_QUERIES_AT_ONCE = 100


class CausalTransformer(nn.Module):
    """Layers of causal self-attention and a feed-forward part, normalised before each part.

    Linear layers run over the tokens alone; only the attention sees histories laid out with their
    ends filled up, which no item looks at because they come after it.

    Args:
        dim: D; a multiple of `num_heads`.
        num_layers: Layers.
        num_heads: H.
        relative: Whether each head learns what to add for the distance of two items.
        dropout: Share of what each part adds that training sets to zero.

    Source:
        "Self-attentive sequential recommendation", ICDM 2018; the order of the normalisation from
        "On layer normalization in the transformer architecture", ICML 2020. Differs: GELU, a
        hidden width of 4 D, no dropout on the attention weights, and a distance term.
    """

    def __init__(
        self, dim: int, *, num_layers: int, num_heads: int, relative: bool, dropout: float
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            _Layer(dim, num_heads=num_heads, relative=relative, dropout=dropout)
            for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(dim)

    def forward(self, inputs: Tensor, block: HistoryBlock) -> Tensor:
        """Turn what stands for the items into the states after them: [T, D] to [T, D]."""
        states = inputs
        for layer in self.layers:
            states = layer(states, block)
        return self.norm(states)  # type: ignore[no-any-return]


class _Layer(nn.Module):
    def __init__(self, dim: int, *, num_heads: int, relative: bool, dropout: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.attention_norm, self.forward_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention_in, self.attention_out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.forward_in = nn.Linear(dim, _EXPANSION * dim)
        self.forward_out = nn.Linear(_EXPANSION * dim, dim)
        self.distance = DistanceBias(num_heads) if relative else None
        self.dropout = Dropout(dropout)
        for linear in (self.attention_in, self.attention_out, self.forward_in, self.forward_out):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)
        with torch.no_grad():  # at first a layer adds little to what goes past it
            self.attention_out.weight.mul_(0.5)
            self.forward_out.weight.mul_(0.5)

    def forward(self, states: Tensor, block: HistoryBlock) -> Tensor:
        attended = self.attention_out(self._attend(states, block))
        states = states + self.dropout(attended)
        hidden = functional.gelu(self.forward_in(self.forward_norm(states)))
        return states + self.dropout(self.forward_out(hidden))  # type: ignore[no-any-return]

    def _attend(self, states: Tensor, block: HistoryBlock) -> Tensor:
        """Mix each item with the older ones: [T, D] to [T, D]."""
        dim = states.shape[1]
        mixed = block.spread(self.attention_in(self.attention_norm(states)))  # [n, W, 3 D]
        parts = mixed.view(*mixed.shape[:2], 3, self.num_heads, dim // self.num_heads)
        queries, keys, values = parts.permute(2, 0, 3, 1, 4)  # [n, H, W, D / H] each
        if self.distance is None:
            seen = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        else:
            seen = biased_attention(queries, keys, values, self.distance(block.width))
        return block.collect(seen.transpose(1, 2).flatten(2))


def biased_attention(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
    """Compute causal attention with a term for each pair of items, some queries at a time.

    Torch's own takes a bias with a gradient only in a form that computes all pairs, those of newer
    items too. Here a part of the queries meets the keys up to its newest query and no others.

    Args:
        queries: [n, H, W, D / H].
        keys: Likewise.
        values: Likewise.
        bias: [H, W, W], -inf for a newer item.

    Returns:
        As `values`.
    """
    width = queries.shape[2]
    queries, keys = queries * queries.shape[3] ** -0.5, keys.transpose(2, 3)
    step = math.ceil(width / math.ceil(width / _QUERIES_AT_ONCE))
    seen = []
    for start in range(0, width, step):
        stop = min(start + step, width)
        logits = queries[:, :, start:stop] @ keys[..., :stop]  # [n, H, step, stop]
        logits += bias[:, start:stop, :stop]
        seen.append(logits.softmax(dim=3) @ values[:, :, :stop])
    return torch.cat(seen, dim=2)


class DistanceBias(nn.Module):
    """What a head adds to the weight of an item at a distance: a learned number a bucket.

    Args:
        num_heads: H.
    """

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.zeros(num_heads, NUM_BUCKETS))

    def forward(self, width: int) -> Tensor:
        """Give the bias of W items for W items: [H, W, W], -inf for a newer item."""
        distances = torch.arange(width - 1, -1, -1, device=self.values.device)
        by_distance = self.values.index_select(1, distance_buckets(distances))  # far to near
        newer = by_distance.new_full((len(by_distance), width - 1), float("-inf"))
        # Row i is the slice that begins at W - 1 - i: its entry j stands at distance i - j.
        return torch.cat([by_distance, newer], dim=1).unfold(1, width, 1).flip(1)
