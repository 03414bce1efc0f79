"""The ridge part over padded blocks, for graphs, which know no factorisation of a matrix.

Dimensions: B histories of L entries, N items, K factors.
"""

import torch
from torch import Tensor, nn

from recsys.models.ridge_part import RidgePart

_ROUNDING = 1e-22  # of squared lengths: the relative residual is below 1e-11
_STEPS_PER_FACTOR = 2  # K steps are enough without rounding


class PaddedRidge(nn.Module):
    """`RidgePart.embed_histories` over padded blocks, by conjugate gradients in float64.

    Args:
        ridge: The part.
    """

    def __init__(self, ridge: RidgePart) -> None:
        super().__init__()
        self.ridge = ridge

    def forward(self, items: Tensor, known: Tensor) -> Tensor:
        """Solve for the vectors of histories: [B, K]; see `RidgePart`."""
        ridge = self.ridge
        num_items, dim = ridge.item_factors.shape
        rows, _ = torch.where(known, items, num_items).sort(dim=1)
        fresh = rows < num_items
        repeated = torch.cat([torch.zeros_like(fresh[:, :1]), rows[:, 1:] == rows[:, :-1]], dim=1)
        fresh = fresh & ~repeated  # repeats count once
        factors = nn.functional.embedding(rows.clamp(max=num_items - 1), ridge.item_factors)
        factors = torch.where(fresh[:, :, None], factors, 0.0)  # [B, L, K]
        frequency = fresh.sum(dim=1, keepdim=True) + ridge.unobserved * num_items
        weights = ridge.unobserved * ridge.squares + ridge.regularization * frequency  # [B, K]
        roots = weights.double().rsqrt()
        system = (factors.transpose(1, 2) @ factors).double()  # [B, K, K]
        system = roots[:, :, None] * system * roots[:, None, :] + torch.eye(dim).double()
        right = roots * factors.double().sum(dim=1)
        solved = roots * solve(system, right, most_steps=_STEPS_PER_FACTOR * dim)
        return ridge.root * solved.float()


def solve(system: Tensor, right: Tensor, *, most_steps: int) -> Tensor:
    """Solve positive definite systems by conjugate gradients.

    Args:
        system: [B, K, K], float64.
        right: [B, K], float64.
        most_steps: Steps after which it ends in any case.

    Returns:
        [B, K].
    """
    sizes = right.square().sum(dim=1, keepdim=True)  # [B, 1]
    bounds = _ROUNDING * sizes

    def goes_on(step: Tensor, _x: Tensor, _rest: Tensor, _way: Tensor, size: Tensor) -> Tensor:
        return (step < most_steps) & (size > bounds).any()

    def descend(
        step: Tensor, x: Tensor, rest: Tensor, way: Tensor, size: Tensor
    ) -> tuple[Tensor, ...]:
        image, unsolved = (system @ way[:, :, None])[:, :, 0], size > bounds
        length = torch.where(unsolved, size / (way * image).sum(dim=1, keepdim=True), 0.0)
        x, rest = x + length * way, rest - length * image
        left = rest.square().sum(dim=1, keepdim=True)
        return step + 1, x, rest, rest + torch.where(unsolved, left / size, 0.0) * way, left

    start = (torch.tensor(0), torch.zeros_like(right), right.clone(), right.clone(), sizes)
    solved: Tensor = torch.while_loop(goes_on, descend, start)[1]
    return solved
