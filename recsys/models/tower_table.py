"""Items of histories as the item tower embeds them, in the place of a table of their own.

Dimensions: N items, n distinct rows looked up, L entries in all bags, B bags, D embedding width.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from recsys.models.bag_sum import bag_sum_of_groups
from recsys.models.feature_encoder import to_tensor
from recsys.models.fixed_blocks import BLOCK_SIZE, fixed_blocks
from recsys.models.grouped_rows import GroupedRows


class VectorTable:
    """Vectors that stay as they are, one a row: what histories read at search.

    Args:
        vectors: [N, D].
    """

    def __init__(self, vectors: Tensor) -> None:
        self._vectors = vectors

    def __call__(self, rows: Tensor) -> Tensor:
        """Look rows up; see `ItemTable`."""
        return functional.embedding(rows, self._vectors)

    def bag(self, rows: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
        """Give the weighted sum of each bag; see `ItemTable`."""
        return functional.embedding_bag(
            rows, self._vectors, offsets, mode="sum", per_sample_weights=weights
        )


class TowerTable:
    """What the item tower gives for the rows of one training step, each computed once.

    A row is embedded when it is first looked up, so that one that dropout took out before costs
    nothing and gets no gradient, and from then on its vector is the same: what the tower drops at
    random is drawn once a step. Gradients flow to the tower.

    Args:
        embed: Gives the vectors [n, D] of [n] distinct rows, int64.
        dim: D.
        device: Where rows and vectors lie.
    """

    def __init__(
        self, embed: Callable[[Tensor], Tensor], *, dim: int, device: torch.device
    ) -> None:
        self._embed = embed
        self._rows = torch.empty(0, dtype=torch.int64, device=device)  # in order of computation
        self._vectors = torch.zeros(0, dim, device=device)

    def __call__(self, rows: Tensor) -> Tensor:
        """Look rows up; see `ItemTable`."""
        groups = GroupedRows.of(rows.flatten())
        vectors = groups.spread(self._vectors_of(groups.rows))
        return vectors.view(*rows.shape, -1) if rows.numel() > 0 else vectors

    def bag(self, rows: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
        """Give the weighted sum of each bag; see `ItemTable`."""
        groups = GroupedRows.of(rows)
        return bag_sum_of_groups(self._vectors_of(groups.rows), groups, offsets, weights)

    def _vectors_of(self, rows: Tensor) -> Tensor:
        """Give the vectors [n, D] of [n] distinct rows; those that are missing are computed."""
        fresh = rows[torch.isin(rows, self._rows, invert=True)]
        if len(fresh) > 0:
            self._rows = torch.cat([self._rows, fresh])
            self._vectors = torch.cat([self._vectors, self._embed(fresh)])
        if len(fresh) == len(self._rows):  # all that there are, in this order
            return self._vectors
        in_order, places = self._rows.sort()
        return self._vectors.index_select(0, places[torch.searchsorted(in_order, rows)])


@torch.no_grad()
def embed_catalogue(
    embed: Callable[[Tensor], Tensor], num_items: int, device: torch.device
) -> Tensor:
    """Embed all N items in blocks of one size: [N, D].

    Args:
        embed: Gives the vectors [B, D] of [B] rows, int64; rows of -1 fill the last block up.
        num_items: N.
        device: Where rows and vectors lie.
    """
    parts = []
    for start, rows in fixed_blocks(num_items, BLOCK_SIZE):
        parts.append(embed(to_tensor(rows, device, torch.int64))[: num_items - start])
    return torch.cat(parts)
