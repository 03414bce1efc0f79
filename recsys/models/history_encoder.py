"""A user's history of items as one vector.

Dimensions: B users, L items in a history, D embedding width.
"""

import torch
from torch import Tensor, nn

from recsys.models.embeddings import EmbeddingTable


class HistoryEncoder(nn.Module):
    """Pool the items of a history, the newest weighing most.

    The item of age a (0: the newest) weighs w = decay^a, and

        pooled = sum(w · vector[item]) / sum(w)^exponent.

    Exponent 1 is the weighted mean; with decay 1 it is the plain mean. A smaller exponent lets
    longer histories give longer vectors. Padding enters neither sum, nor does an item that dropout
    takes out in training; ages count positions, so the others keep theirs. A history with nothing
    left is a learned vector of its own.

    Args:
        dim: D.
        length: Items looked at, the newest ones.
        decay: In (0, 1].
        exponent: In [0, 1].
        dropout: Share of the items that training takes out.
        init_std: Standard deviation of the first values of the empty history's vector.
    """

    weights: Tensor

    def __init__(
        self,
        dim: int,
        *,
        length: int,
        decay: float,
        exponent: float,
        dropout: float,
        init_std: float,
    ) -> None:
        super().__init__()
        self.length, self.exponent, self.dropout = length, exponent, dropout
        weights = decay ** torch.arange(length, dtype=torch.float64)
        self.register_buffer("weights", weights.float(), persistent=False)  # [length]
        self.empty = nn.Parameter(torch.randn(dim) * init_std)

    def forward(self, histories: Tensor, known: Tensor, table: EmbeddingTable) -> Tensor:
        """Pool histories.

        Args:
            histories: [B, L], int64, rows of `table`, newest first.
            known: [B, L], bool, which entries are items that the table holds; the others (padding
                among them) are as if they were not there.
            table: The items' vectors.

        Returns:
            [B, D].
        """
        histories, known = histories[:, : self.length], known[:, : self.length]
        # A weight that float32 cannot hold is no weight: such an item is as good as not there.
        weights = self.weights[: histories.shape[1]]  # [L]
        kept = known & (weights > torch.finfo(weights.dtype).tiny)
        if self.training and self.dropout > 0:
            kept = kept & (torch.rand(kept.shape, device=kept.device) >= self.dropout)
        weights = weights * kept  # [B, L]

        # Only what is kept is looked up: an entry of weight 0 would still touch its row.
        counts = kept.sum(dim=1)  # [B]
        offsets = counts.cumsum(dim=0) - counts
        places = kept.flatten().nonzero().squeeze(1)
        rows = histories.flatten().index_select(0, places)
        pooled = table.bag(rows, offsets, weights.flatten().index_select(0, places))  # [B, D]

        is_empty = (counts == 0)[:, None]  # [B, 1]
        totals = weights.sum(dim=1, keepdim=True).masked_fill(is_empty, 1.0)
        return torch.where(is_empty, self.empty, pooled / totals**self.exponent)
