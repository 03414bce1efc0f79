"""The weighted sum of bags of rows, with a gradient that touches each row once.

Dimensions: B bags, L entries in all bags, R rows of the table, D embedding width.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional


def bag_sum(table: Tensor, rows: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
    """Give sum(weight · table[row]) of each bag; the table's gradient is sparse.

    torch's own sparse gradient holds one [D] vector for each of the L entries, which the optimiser
    must then sort and add up. Here the backward pass is a bag sum too, over the transposed bags:
    for each row, the bags it stands in. Nothing of size L x D exists, and the gradient holds each
    row once.

    Args:
        table: [R, D].
        rows: [L], int64, in [0, R), the bags one behind the other.
        offsets: [B], int64, where each bag begins.
        weights: [L], constants: they get no gradient.

    Returns:
        [B, D]; zeros for an empty bag.
    """
    apply: Callable[..., Tensor] = _BagSum.apply
    return apply(table, rows, offsets, weights)


class _BagSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, rows: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(rows, offsets, weights)
        ctx.table_shape = table.shape
        return functional.embedding_bag(
            rows, table, offsets, mode="sum", per_sample_weights=weights
        )

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        rows, offsets, weights = ctx.saved_tensors
        end = torch.tensor([len(rows)], device=offsets.device)
        lengths = torch.diff(offsets, append=end)  # [B]
        bags = torch.repeat_interleave(lengths)  # [L], the bag of each entry

        sorted_rows, order = torch.sort(rows, stable=True)
        touched, counts = torch.unique_consecutive(sorted_rows, return_counts=True)
        row_gradients = functional.embedding_bag(
            bags.index_select(0, order),
            gradient.contiguous(),
            counts.cumsum(dim=0) - counts,
            mode="sum",
            per_sample_weights=weights.index_select(0, order),
        )  # [touched, D]
        sparse = torch.sparse_coo_tensor(
            touched[None],
            row_gradients,
            ctx.table_shape,
            is_coalesced=True,
            check_invariants=False,  # they hold by construction
        )
        return sparse, None, None, None
