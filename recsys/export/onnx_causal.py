"""Histories read item by item, laid out as padded blocks, for graphs.

Dimensions: B histories of L entries, H heads, D embedding width.
"""

import math
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from recsys.data import NO_TIME
from recsys.export.onnx_history import oldest_first
from recsys.models.causal_gru import CausalGru
from recsys.models.causal_history import CausalHistory
from recsys.models.causal_transformer import CausalTransformer, DistanceBias
from recsys.models.distance_buckets import distance_buckets

_SECOND = 1_000_000  # µs


class PaddedCausal(nn.Module):
    """`CausalHistory` over padded blocks.

    Args:
        history: The encoder.
        table: [N, D], the items' vectors.
    """

    def __init__(self, history: CausalHistory, table: Tensor) -> None:
        super().__init__()
        self.history, self.table = history, table
        self.network = _padded_network(history.network, history.length)

    def forward(self, items: Tensor, known: Tensor, times: Tensor | None) -> Tensor:
        """Read histories, [B, L] newest first, at most `length` entries of each known: [B, D]."""
        history = self.history
        counts, places = known.sum(dim=1), torch.arange(items.shape[1])
        inputs = functional.embedding(oldest_first(items, known), self.table)  # [B, L, D]
        if history.positions is not None:
            inputs = inputs + history.positions[places.clamp(max=history.length - 1)]
        if history.time_gaps is not None and times is not None:
            vectors = history.time_gaps.vectors
            buckets = gap_buckets(oldest_first(times, known), len(vectors) - 1)
            inputs = inputs + functional.embedding(buckets, vectors)
        states = self.network(inputs)  # [B, L, D]
        newest = (counts - 1).clamp(min=0)[:, None, None].expand(-1, 1, states.shape[2])
        state = states.gather(1, newest)[:, 0]
        return torch.where((counts == 0)[:, None], history.empty, state)


def gap_buckets(times: Tensor, num_buckets: int) -> Tensor:
    """Put the time since the entry before into buckets, as `time_gaps.gap_buckets` does.

    Args:
        times: [B, L], int64, µs, oldest first; `NO_TIME` where not known.
        num_buckets: Of known gaps.

    Returns:
        [B, L], int64.
    """
    before = torch.cat([torch.full_like(times[:, :1], NO_TIME), times[:, :-1]], dim=1)
    unknown = (times == NO_TIME) | (before == NO_TIME)
    gaps = (times - before).masked_fill(unknown, 0)
    # A whole second or two to the power of n of them, or more: one bucket further for each n.
    bounds = torch.tensor([_SECOND << power for power in range(num_buckets - 1)])
    buckets = (gaps[:, :, None] >= bounds).sum(dim=2)
    return buckets.masked_fill(unknown, num_buckets)


class PaddedGru(nn.Module):
    """`CausalGru` over padded blocks; what stands behind the end is read last and left unused."""

    def __init__(self, network: CausalGru) -> None:
        super().__init__()
        self.gru, self.output = network.gru, network.output

    def forward(self, inputs: Tensor) -> Tensor:
        """Turn [B, L, D] into the states after each: [B, L, D]."""
        return cast(Tensor, self.output(self.gru(inputs)[0]))


class PaddedTransformer(nn.Module):
    """`CausalTransformer` over padded blocks.

    Args:
        network: The transformer.
        length: The longest history.
    """

    def __init__(self, network: CausalTransformer, length: int) -> None:
        super().__init__()
        self.network, self.length = network, length
        buckets = distance_buckets(torch.arange(length))
        for number, layer in enumerate(network.layers):
            distance = cast(DistanceBias | None, layer.distance)
            bias = None if distance is None else distance.values.detach()[:, buckets]
            self.register_buffer(f"bias_{number}", bias)  # [H, length]

    def forward(self, inputs: Tensor) -> Tensor:
        """Turn [B, L, D] into the states after each: [B, L, D]."""
        places = torch.arange(inputs.shape[1])
        distances = places[:, None] - places  # [L, L]
        states = inputs
        for number, layer in enumerate(self.network.layers):
            by_distance = getattr(self, f"bias_{number}")
            bias = torch.zeros(1, 1, 1)
            if by_distance is not None:
                bias = by_distance[:, distances.clamp(0, self.length - 1)]  # [H, L, L]
            bias = bias.masked_fill(distances < 0, -math.inf)
            states = _layer(layer, states, bias)
        return cast(Tensor, self.network.norm(states))


def _layer(layer: Any, states: Tensor, bias: Tensor) -> Tensor:
    """Apply one layer of a `CausalTransformer` to [B, L, D]."""
    mixed = layer.attention_in(layer.attention_norm(states))  # [B, L, 3 D]
    parts = mixed.unflatten(2, (3, layer.num_heads, -1)).permute(2, 0, 3, 1, 4)
    queries, keys, values = parts[0], parts[1], parts[2]  # [B, H, L, D / H] each
    logits = (queries * queries.shape[3] ** -0.5) @ keys.transpose(2, 3) + bias
    seen = logits.softmax(dim=3) @ values
    states = states + layer.attention_out(seen.transpose(1, 2).flatten(2))
    hidden = functional.gelu(layer.forward_in(layer.forward_norm(states)))
    return cast(Tensor, states + layer.forward_out(hidden))


def _padded_network(network: nn.Module, length: int) -> nn.Module:
    if isinstance(network, CausalGru):
        return PaddedGru(network)
    return PaddedTransformer(cast(CausalTransformer, network), length)
