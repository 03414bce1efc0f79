"""The log of the softmax denominator over a large catalogue, in blocks.

Dimensions: B queries, C candidates, D embedding width.
"""

from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def log_partition(
    scaled_queries: Tensor,
    catalogue_embeddings: Tensor,
    offsets: Tensor | None,
    *,
    row_block_size: int,
    catalogue_block_size: int,
) -> Tensor:
    """Compute ``log of sum over c of exp(<query, candidate_c> + offset_c)`` for each query.

    Neither pass holds [B, C]: logits live in blocks of ``row_block_size x catalogue_block_size``,
    and the second pass computes them again. The gradient of the catalogue is dense, [C, D].

    Args:
        scaled_queries: [B, D], float32 or wider; already divided by the temperature.
        catalogue_embeddings: [C, D], same dtype.
        offsets: [C], same dtype, added to the logits. None: nothing is.
        row_block_size: Queries in a block, at least 1.
        catalogue_block_size: Candidates in a block, at least 1.

    Returns:
        [B], same dtype. -inf for an empty catalogue.
    """
    block_sizes = (row_block_size, catalogue_block_size)
    result = _LogPartition.apply(  # type: ignore[no-untyped-call]
        scaled_queries, catalogue_embeddings, offsets, block_sizes
    )
    return cast(Tensor, result)


class _LogPartition(torch.autograd.Function):
    """The forward pass keeps only its result, the backward pass recomputes the logits."""

    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        catalogue: Tensor,
        offsets: Tensor | None,
        block_sizes: tuple[int, int],
    ) -> Tensor:
        row_block_size, catalogue_block_size = block_sizes
        result = queries.new_empty(len(queries))
        for rows in _blocks(len(queries), row_block_size):
            total = queries.new_full((len(queries[rows]),), float("-inf"))
            for columns in _blocks(len(catalogue), catalogue_block_size):
                logits = _logits(queries[rows], catalogue, offsets, columns)
                total = torch.logaddexp(total, logits.logsumexp(dim=1))
            result[rows] = total
        ctx.save_for_backward(queries, catalogue, offsets, result)
        ctx.block_sizes = block_sizes
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, catalogue, offsets, result = ctx.saved_tensors
        row_block_size, catalogue_block_size = ctx.block_sizes
        query_gradient = torch.zeros_like(queries)
        catalogue_gradient = torch.zeros_like(catalogue)
        offsets_gradient = None if offsets is None else torch.zeros_like(offsets)
        with torch.autocast(queries.device.type, enabled=False):
            for rows in _blocks(len(queries), row_block_size):
                for columns in _blocks(len(catalogue), catalogue_block_size):
                    share = _logits(queries[rows], catalogue, offsets, columns)
                    share.sub_(result[rows, None]).exp_().mul_(gradient[rows, None])
                    query_gradient[rows].addmm_(share, catalogue[columns])
                    catalogue_gradient[columns].addmm_(share.T, queries[rows])
                    if offsets_gradient is not None:
                        offsets_gradient[columns] += share.sum(dim=0)
        return query_gradient, catalogue_gradient, offsets_gradient, None


def _logits(queries: Tensor, catalogue: Tensor, offsets: Tensor | None, columns: slice) -> Tensor:
    if offsets is None:
        return queries @ catalogue[columns].T
    return torch.addmm(offsets[columns], queries, catalogue[columns].T)


def _blocks(length: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]
