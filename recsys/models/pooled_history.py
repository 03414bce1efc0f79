"""The items of a history as one vector: their weighted sum.

Dimensions: B users, L items that are looked up, D embedding width.
"""

import numpy as np
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
    totals: Tensor
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
        # A weight that float32 cannot hold is no weight: such an item is not looked up.
        self.reach = int((weights > torch.finfo(torch.float32).tiny).sum())
        totals = torch.cat([torch.ones(1), weights.cumsum(dim=0)])  # of none: no division by 0
        self.register_buffer("weights", weights.float(), persistent=False)  # [length]
        self.register_buffer("totals", totals.float(), persistent=False)  # [length + 1]
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
        counts = known.sum(dim=1)  # [B]
        starts = counts.cumsum(dim=0) - counts
        slots = _places(known)  # [n], of all known items
        ages = torch.arange(len(slots), device=slots.device)
        ages -= torch.repeat_interleave(starts, counts, output_size=len(slots))
        kept = self._keep(ages)  # [L], which of the n are looked up
        slots, ages = slots.index_select(0, kept), ages.index_select(0, kept)
        rows = histories.flatten().index_select(0, slots)
        entries = self._weights_of_kept().index_select(0, ages)
        offsets = _find(starts, kept)  # [B]

        totals = self.totals.index_select(0, counts)[:, None] ** self.exponent  # [B, 1]
        pooled = table.bag(rows, offsets, entries) / totals  # [B, D]
        if self.gate is not None:
            entries = entries * self.gate(pooled, rows, offsets)
            pooled = table.bag(rows, offsets, entries) / totals
        # Without known items the sum is exactly 0.
        return torch.addr(pooled, (counts == 0).to(pooled.dtype), self.empty)

    def _keep(self, ages: Tensor) -> Tensor:
        """Give which of the known items are looked up, by their ages: int64, rising.

        Only what is kept is: an entry of weight 0 would still touch its row.
        """
        keep = ages < self.reach
        if self.training and self.dropout > 0:
            keep &= torch.rand(len(ages), device=ages.device) >= self.dropout
        return _places(keep)

    def _weights_of_kept(self) -> Tensor:
        share = self.dropout if self.training else 0.0
        return self.weights / (1 - share) if share > 0 else self.weights


def _places(mask: Tensor) -> Tensor:
    """Give where a mask of any shape is true, counted through it: int64, rising."""
    if mask.device.type == "cpu":  # NumPy's search is several times faster
        return torch.from_numpy(np.flatnonzero(mask.numpy()))
    return mask.flatten().nonzero().squeeze(1)


def _find(values: Tensor, rising: Tensor) -> Tensor:
    """Give where each of the values, rising too, would stand: int64."""
    if values.device.type == "cpu":  # NumPy's search goes on from the value before
        return torch.from_numpy(np.searchsorted(rising.numpy(), values.numpy()))
    return torch.searchsorted(rising, values)
