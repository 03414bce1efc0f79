"""What an item of a history counts for in the company of the others.

Dimensions: B histories, L entries in all of them, N items, D embedding width, G width of the gate.
"""

import torch
from torch import Tensor, nn

from recsys.models.embeddings import EmbeddingTable

_KEY_STD = 0.05


class HistoryGate(nn.Module):
    """Weigh each item of a history by how it goes with the whole.

    With z the pooled vector of a history, its item i counts

        gate = 2 · sigmoid(bias[i] + <z · project, key[i]>)

    times, which is from 0 to 2 and at first near 1. Biases begin at 0.

    Args:
        trained: [N], bool, items that occur in training; the others count 1 times.
        dim: D.
        gate_dim: G.
        sparse: Whether the gradients of keys and biases are sparse.
    """

    def __init__(self, trained: Tensor, dim: int, gate_dim: int, *, sparse: bool) -> None:
        super().__init__()
        self.keys = EmbeddingTable(len(trained), gate_dim, init_std=_KEY_STD, sparse=sparse)
        with torch.no_grad():
            self.keys.weight[~trained] = 0.0
        self.biases = EmbeddingTable(len(trained), 1, init_std=0.0, sparse=sparse)
        self.project = nn.Parameter(torch.randn(dim, gate_dim) * dim**-0.5)

    def forward(self, pooled: Tensor, rows: Tensor, offsets: Tensor) -> Tensor:
        """Give the gate of each entry: [L].

        Args:
            pooled: [B, D].
            rows: [L], int64, items of the histories, one history behind the other.
            offsets: [B], int64, where each history begins.
        """
        fits = self.keys.dots(rows, offsets, pooled @ self.project)
        biases = self.biases.dots(rows, offsets, torch.ones_like(pooled[:, :1]))
        return 2 * torch.sigmoid(biases + fits)
