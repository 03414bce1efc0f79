"""Tables of learned vectors, and the one that maps ids to them.

Dimensions: B rows looked up, L entries in all bags, D embedding width.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from recsys.foundations import check_positive
from recsys.models.bag_sum import bag_dot, bag_sum
from recsys.models.grouped_rows import bags_of, look_up


class EmbeddingTable(nn.Module):
    """Learned vectors, one a row, drawn from a normal distribution.

    Args:
        num_rows: Rows of the table.
        dim: D, width of a vector.
        init_std: Standard deviation of the first values.
        sparse: Whether gradients hold only the rows that were looked up. The cost of a step then
            does not depend on `num_rows`; the optimiser must be one that takes such gradients.
    """

    def __init__(self, num_rows: int, dim: int, *, init_std: float, sparse: bool) -> None:
        super().__init__()
        check_positive("num_rows", num_rows)
        check_positive("dim", dim)
        self.sparse = sparse
        # In place: a product would be a second table for a moment.
        self.weight = nn.Parameter(torch.randn(num_rows, dim).mul_(init_std))

    def forward(self, rows: Tensor) -> Tensor:
        """Look rows up: any shape of int64 gives the same shape with [D] appended."""
        if self.sparse:
            return look_up(self.weight, rows)
        return functional.embedding(rows, self.weight)

    def bag(self, rows: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
        """Give the weighted sum of each bag of rows.

        Args:
            rows: [L], int64, the bags one behind the other.
            offsets: [B], int64, where each bag begins.
            weights: [L].

        Returns:
            [B, D]; zeros for an empty bag.
        """
        if self.sparse:
            return bag_sum(self.weight, rows, offsets, weights)
        return functional.embedding_bag(
            rows, self.weight, offsets, mode="sum", per_sample_weights=weights
        )

    def dots(self, rows: Tensor, offsets: Tensor, queries: Tensor) -> Tensor:
        """Give the inner product of each entry's vector with the query of its bag.

        Args:
            rows: [L], int64, the bags one behind the other.
            offsets: [B], int64, where each bag begins.
            queries: [B, D].

        Returns:
            [L].
        """
        if self.sparse:
            return bag_dot(self.weight, rows, offsets, queries)
        vectors = functional.embedding(rows, self.weight)
        return (vectors * queries.index_select(0, bags_of(rows, offsets))).sum(dim=1)


class IdRows(nn.Module):
    """Map the rows of a vocabulary to rows of an embedding table.

    The table's last row stands for every id that has no vector of its own: one outside the
    vocabulary, or one that `trained` says training never saw. So that this row is trained too,
    training sends a share of all ids there at random.

    Args:
        num_ids: Ids with a row of their own; the table has one row more.
        dropout: Share of the ids that training treats as unknown.
        trained: [num_ids], bool, ids that occur in training.
    """

    trained: Tensor

    def __init__(self, num_ids: int, *, dropout: float, trained: Tensor) -> None:
        super().__init__()
        self.num_ids, self.dropout = num_ids, dropout
        self.register_buffer("trained", trained)

    def forward(self, rows: Tensor) -> Tensor:
        """Map [B] int64 rows of the vocabulary (-1: unknown) to [B] rows of the table."""
        known = self.known(rows)
        if self.training and self.dropout > 0:
            known &= torch.rand(rows.shape, device=rows.device) >= self.dropout
        return torch.where(known, rows, self.num_ids)

    def known(self, rows: Tensor) -> Tensor:
        """Tell which rows have a vector of their own: bool, the shape of `rows`."""
        if self.num_ids == 0:
            return torch.zeros_like(rows, dtype=torch.bool)
        inside = rows.clamp(0, self.num_ids - 1)
        trained = self.trained.index_select(0, inside.flatten()).reshape(rows.shape)
        return (inside == rows) & trained
