"""Vectors of a linear model beside those of the towers.

Dimensions: N items, K factors, B histories of L items, C candidates.
"""

import math

import torch
from torch import Tensor, nn

from recsys.foundations import check_shape

_AT_ONCE = 64  # histories solved at once: each takes K x K numbers


class RidgePart(nn.Module):
    """Frozen factors of items, and the vector of a history that fits them best.

    The vector u of a history of n different items with the factors v minimises

        sum over the history (<u, v> - 1)^2 + unobserved · sum over all N items <u, v>^2
        + regularization · (n + unobserved · N) · |u|^2,

    which has one closed solution, so that a user who was not there when fitting has a vector like
    the others. A candidate's vector is its factors; an inner product of the two is multiplied by
    `scale`, half of it (as a factor, the root) on either side. Items that the model does not know
    have zeros, and so has a history without a known one.

    `ItemFactors` finds the factors, once, before the towers train. They are no parameters:
    trained together with the towers, or after them by the towers' loss, both sides end up worse.

    Args:
        num_items: N.
        dim: K; a multiple of 16, so that the numbers of a history begin alike in memory wherever
            in a batch it stands, on which the last bits of its vector depend.
        regularization: Above 0.
        unobserved: Weight of what was not met, above 0.
        scale: Above 0.
    """

    item_factors: Tensor
    gram: Tensor

    def __init__(
        self,
        num_items: int,
        dim: int,
        *,
        regularization: float,
        unobserved: float,
        scale: float,
    ) -> None:
        super().__init__()
        self.regularization, self.unobserved = regularization, unobserved
        self.scale = scale
        self.register_buffer("item_factors", torch.zeros(num_items, dim))  # [N, K]
        self.register_buffer("gram", torch.zeros(dim, dim))

    @property
    def root(self) -> float:
        """What vectors of either side are multiplied by."""
        return math.sqrt(self.scale)

    def set_item_factors(self, factors: Tensor) -> None:
        """Take the factors of all items: [N, K]."""
        check_shape("factors", factors, *self.item_factors.shape)
        self.item_factors.copy_(factors)
        wide = self.item_factors.double()
        self.gram.copy_(wide.T @ wide)

    @torch.no_grad()
    def embed_histories(self, histories: Tensor, known: Tensor) -> Tensor:
        """Solve for the vectors of histories: [B, K].

        Args:
            histories: [B, L], int64, item rows in any order; repeats count once.
            known: [B, L], bool, which of them are items in [0, N) that count.
        """
        num_items, dim = self.item_factors.shape
        rows, _ = histories.masked_fill(~known, num_items).sort(dim=1)
        fresh = rows < num_items
        fresh[:, 1:] &= rows[:, 1:] != rows[:, :-1]
        counts = fresh.sum(dim=1)
        vectors = self.item_factors.new_zeros(len(histories), dim)
        owners = counts.nonzero().squeeze(1)
        for some in owners.split(_AT_ONCE) if len(owners) > 0 else ():
            flat = rows.index_select(0, some)[fresh.index_select(0, some)]
            of_some = counts.index_select(0, some)
            vectors[some] = self._solve(flat.split(of_some.tolist()), of_some)
        return self.root * vectors

    def _solve(self, items: tuple[Tensor, ...], counts: Tensor) -> Tensor:
        """Solve for [n] lists of different items, each by itself: [n, K]."""
        base, matrices, sums = self.unobserved * self.gram, [], []
        for rows in items:
            factors = self.item_factors.index_select(0, rows)
            matrices.append(torch.addmm(base, factors.T, factors))
            sums.append(factors.sum(dim=0))
        matrix = torch.stack(matrices)
        frequency = counts + self.unobserved * len(self.item_factors)
        matrix.diagonal(dim1=1, dim2=2).add_(self.regularization * frequency[:, None])
        lower = torch.linalg.cholesky(matrix)
        solved: Tensor = torch.cholesky_solve(torch.stack(sums)[:, :, None], lower)
        return solved[:, :, 0]

    def embed_items(self, rows: Tensor) -> Tensor:
        """Look the vectors of [C] item rows up: [C, K], zeros outside [0, N)."""
        num_items = len(self.item_factors)
        known = (rows >= 0) & (rows < num_items)
        factors = self.item_factors.index_select(0, rows.clamp(0, num_items - 1))
        return self.root * torch.where(known[:, None], factors, 0.0)
