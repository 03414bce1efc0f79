"""Vectors of a linear model beside those of the towers.

Dimensions: N items, K factors, B histories of L items, C candidates.
"""

import math

import torch
from torch import Tensor, nn

from recsys.foundations import check_shape
from recsys.models.principal_axes import principal_axes


class RidgePart(nn.Module):
    """Frozen factors of items, and the vector of a history that fits them best.

    The vector u of a history of n different items with the factors v minimises

        sum over the history (<u, v> - 1)^2 + unobserved · sum over all N items <u, v>^2
        + regularization · (n + unobserved · N) · |u|^2,

    which has one closed solution, so that a user who was not there when fitting has a vector like
    the others. A candidate's vector is its factors; an inner product of the two is multiplied by
    `scale`, half of it (as a factor, the root) on either side. Items that the model does not know
    have zeros, and so has a history without a known one. All of it stands in the principal axes of
    the factors, where only the first sum ties the numbers of u together.

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
    squares: Tensor

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
        self.register_buffer("squares", torch.zeros(dim))  # [K], sums over the items

    @property
    def root(self) -> float:
        """What vectors of either side are multiplied by."""
        return math.sqrt(self.scale)

    def set_item_factors(self, factors: Tensor) -> None:
        """Take the factors of all items, [N, K], and turn them to their principal axes."""
        check_shape("factors", factors, *self.item_factors.shape)
        self.item_factors.copy_(factors @ principal_axes(factors))
        self.squares.copy_(self.item_factors.double().square().sum(dim=0))

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
        lists = rows[fresh].split(fresh.sum(dim=1).tolist())  # one by one: last bits stay the same
        if len(lists) == 0:
            return self.item_factors.new_zeros(0, dim)
        return self.root * torch.stack([self._solve(items) for items in lists])

    def _solve(self, items: Tensor) -> Tensor:
        """Solve for a list of n different items: [K]."""
        num_items, dim = self.item_factors.shape
        factors = self.item_factors.index_select(0, items)  # [n, K]
        frequency = len(items) + self.unobserved * num_items
        weights = self.unobserved * self.squares + self.regularization * frequency  # [K]
        if len(items) >= dim:
            system = torch.addmm(weights.diag(), factors.T, factors)
            return _solve_definite(system, factors.sum(dim=0))
        # (W + Zᵀ Z)⁻¹ Zᵀ = W⁻¹ Zᵀ (1 + Z W⁻¹ Zᵀ)⁻¹: n unknowns in place of K.
        eased = factors * weights.rsqrt()
        system = torch.addmm(torch.eye(len(items), device=items.device), eased, eased.T)
        solved = _solve_definite(system, factors.new_ones(len(items)))
        return (solved @ eased) * weights.rsqrt()

    def embed_items(self, rows: Tensor) -> Tensor:
        """Look the vectors of [C] item rows up: [C, K], zeros outside [0, N)."""
        num_items = len(self.item_factors)
        known = (rows >= 0) & (rows < num_items)
        factors = self.item_factors.index_select(0, rows.clamp(0, num_items - 1))
        return self.root * torch.where(known[:, None], factors, 0.0)


def _solve_definite(system: Tensor, right: Tensor) -> Tensor:
    """Solve one positive definite system of n unknowns: [n]."""
    lower = torch.linalg.cholesky(system)
    solved: Tensor = torch.cholesky_solve(right[:, None], lower)
    return solved[:, 0]
