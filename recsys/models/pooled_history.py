"""The items of a history as one vector: their weighted sum.

Dimensions: B users, L items in a history, D embedding width.
"""

import torch
from torch import Tensor, nn

from recsys.models.history_encoder import ItemTable, QueryPlaces, refuse_places
from recsys.models.history_gate import HistoryGate


class PooledHistory(nn.Module):
    """Pool the items of a history, the newest weighing most.

    The item of age a (0: the newest known one) weighs w = decay^a, and

        pooled = sum(w · vector[item]) / sum(w)^exponent.

    Exponent 1 is the weighted mean; with decay 1 it is the plain mean. A smaller exponent lets
    longer histories give longer vectors. Padding and unknown items are as if they were not there:
    they enter neither sum and count in no age. A history without a known item is a learned vector
    of its own.

    In training, dropout takes items out of the first sum; the others keep their age, and what is
    left of it is divided by 1 - dropout. The second sum stays whole, so that a history has the same
    expected vector in training as in search; where dropout takes out all of its items, that draw is
    zeros.

    With a gate, each item's weight in the first sum, and there alone, is multiplied by what the
    gate gives for the item and the pooled vector without a gate.

    Args:
        dim: D.
        length: Items looked at, the newest ones.
        decay: In (0, 1].
        exponent: In [0, 1].
        dropout: Share of the items that training takes out.
        init_std: Standard deviation of the first values of the empty history's vector.
        gate: None for no gate.
    """

    weights: Tensor
    num_interests = 1
    is_causal = False
    uses_times = False

    def __init__(
        self,
        dim: int,
        *,
        length: int,
        decay: float,
        exponent: float,
        dropout: float,
        init_std: float,
        gate: HistoryGate | None = None,
    ) -> None:
        super().__init__()
        self.length, self.exponent, self.dropout = length, exponent, dropout
        weights = decay ** torch.arange(length, dtype=torch.float64)
        self.register_buffer("weights", weights.float(), persistent=False)  # [length]
        self.gate = gate
        self.empty = nn.Parameter(torch.randn(dim) * init_std)

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
        # A weight that float32 cannot hold is no weight: such an item is not looked up.
        ages = known.cumsum(dim=1) - 1  # [B, L]
        weights = self.weights[ages.clamp(min=0)]
        kept = known & (weights > torch.finfo(weights.dtype).tiny)
        is_empty = ~kept.any(dim=1, keepdim=True)  # [B, 1]
        weights = weights * kept
        totals = weights.sum(dim=1, keepdim=True).masked_fill(is_empty, 1.0)
        if self.training and self.dropout > 0:
            kept = kept & (torch.rand(kept.shape, device=kept.device) >= self.dropout)
            weights = weights / (1 - self.dropout)

        # Only what is kept is looked up: an entry of weight 0 would still touch its row.
        counts = kept.sum(dim=1)  # [B]
        offsets = counts.cumsum(dim=0) - counts
        slots = kept.flatten().nonzero().squeeze(1)
        rows = histories.flatten().index_select(0, slots)
        entries = weights.flatten().index_select(0, slots)
        pooled = table.bag(rows, offsets, entries) / totals**self.exponent  # [B, D]
        if self.gate is not None:
            entries = entries * self.gate(pooled, rows, offsets)
            pooled = table.bag(rows, offsets, entries) / totals**self.exponent
        return torch.where(is_empty, self.empty, pooled)
