"""The sum of the losses of many candidates as negatives of a binary classification, in blocks.

Dimensions: B queries, K candidates, D embedding width.
"""

from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from recsys.losses.blocks import MOST_KEPT, Blocks, block_logits
from recsys.losses.removal import Removal


def softplus(logits: Tensor) -> Tensor:
    """Compute ``log(1 + exp(logit))``, exact to the last digits at both ends; 0 at -inf.

    (`functional.softplus` gives its argument back above 20.)
    """
    return -functional.logsigmoid(-logits)


def softplus_sum(
    scaled_queries: Tensor,
    candidate_embeddings: Tensor,
    offsets: Tensor | None,
    removal: Removal | None,
    *,
    blocks: Blocks,
) -> Tensor:
    """Compute ``sum over k of log(1 + exp(<query, candidate_k> + offset_k))`` for each query.

    Logits live in blocks; with more than 16.8 million of them in all, neither pass holds [B, K],
    and the backward pass computes them again: four matrix products in all instead of three.
    Gradients of the candidates are dense, [K, D].

    Args:
        scaled_queries: [B, D], float32 or wider; already divided by the temperature.
        candidate_embeddings: [K, D], same dtype.
        offsets: [K], same dtype, added to the logits. None: nothing is.
        removal: What leaves the sum, with a gradient of exactly 0. None: nothing does.
        blocks: The size of a block; the result does not depend on it.

    Returns:
        [B], same dtype. 0, with gradient 0, where no candidate is left.
    """
    result = _SoftplusSum.apply(  # type: ignore[no-untyped-call]
        scaled_queries, candidate_embeddings, offsets, (removal, blocks)
    )
    return cast(Tensor, result)


class _SoftplusSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        candidates: Tensor,
        offsets: Tensor | None,
        plan: tuple[Removal | None, Blocks],
    ) -> Tensor:
        removal, blocks = plan
        result = queries.new_zeros(len(queries))
        keep = len(queries) * len(candidates) <= MOST_KEPT and any(ctx.needs_input_grad)
        kept: list[Tensor] = []  # block by block: the logits
        for block in blocks.over(len(queries), len(candidates)):
            logits = block_logits(queries, candidates, offsets, removal, block)
            rows, _ = block
            result[rows] += softplus(logits).sum(dim=1)
            if keep:
                kept.append(logits)
        ctx.save_for_backward(queries, candidates, offsets, *kept)
        ctx.plan = plan
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, candidates, offsets, *kept = ctx.saved_tensors
        removal, blocks = ctx.plan
        of_queries, of_candidates = torch.zeros_like(queries), torch.zeros_like(candidates)
        of_offsets = torch.zeros_like(offsets) if ctx.needs_input_grad[2] else None
        with torch.autocast(queries.device.type, enabled=False):
            for i, block in enumerate(blocks.over(len(queries), len(candidates))):
                if kept:
                    logits = kept[i]
                else:
                    logits = block_logits(queries, candidates, offsets, removal, block)
                rows, columns = block
                slopes = logits.sigmoid() * gradient[rows, None]  # [b, k]
                of_queries[rows].addmm_(slopes, candidates[columns])
                of_candidates[columns].addmm_(slopes.T, queries[rows])
                if of_offsets is not None:
                    of_offsets[columns] += slopes.sum(dim=0)
        return of_queries, of_candidates, of_offsets, None
