"""Items of histories as the item tower embeds them, in the place of a table of their own.

Dimensions: N items, n distinct rows looked up, L entries in all bags, B bags, D embedding width.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from recsys.models.feature_encoder import to_tensor
from recsys.models.fixed_blocks import BLOCK_SIZE, fixed_blocks


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
        return _bag(self._vectors, rows, offsets, weights)


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
        places = self._places(rows.flatten())  # first, as it brings vectors
        vectors = self._vectors.index_select(0, places)
        return vectors.view(*rows.shape, -1) if rows.numel() > 0 else vectors

    def bag(self, rows: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
        """Give the weighted sum of each bag; see `ItemTable`."""
        places = self._places(rows)  # first, as it brings vectors
        return _bag(self._vectors, places, offsets, weights)

    def _places(self, rows: Tensor) -> Tensor:
        """Give where the vectors of [L] rows stand, once those that are missing are computed."""
        wanted = rows.unique()
        fresh = wanted[torch.isin(wanted, self._rows, invert=True)]
        if len(fresh) > 0:
            self._rows = torch.cat([self._rows, fresh])
            self._vectors = torch.cat([self._vectors, self._embed(fresh)])
        in_order, places = self._rows.sort()
        return places[torch.searchsorted(in_order, rows)]


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


def _bag(vectors: Tensor, rows: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
    if len(rows) == 0:  # there may be no vector at all
        return vectors.new_zeros(len(offsets), vectors.shape[1])
    return functional.embedding_bag(rows, vectors, offsets, mode="sum", per_sample_weights=weights)
