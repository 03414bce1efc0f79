"""The log of a softmax denominator over many candidates, in blocks.

Dimensions: B queries, K candidates, D embedding width.
"""

from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from recsys.losses.blocks import MOST_KEPT, Blocks, block_logits
from recsys.losses.removal import Removal


def log_partition(
    scaled_queries: Tensor,
    candidate_embeddings: Tensor,
    offsets: Tensor | None,
    removal: Removal | None,
    *,
    blocks: Blocks,
) -> Tensor:
    """Compute ``log of sum over k of exp(<query, candidate_k> + offset_k)`` for each query.

    Logits live in blocks; with more than 16.8 million of them in all, neither pass holds [B, K].
    Gradients of the candidates are dense, [K, D].

    Args:
        scaled_queries: [B, D], float32 or wider; already divided by the temperature.
        candidate_embeddings: [K, D], same dtype.
        offsets: [K], same dtype, added to the logits. None: nothing is.
        removal: What leaves the sum, with a gradient of exactly 0. None: nothing does.
        blocks: The size of a block; the result does not depend on it.

    Returns:
        [B], same dtype. -inf, with gradient 0, where no candidate is left.
    """
    result = _LogPartition.apply(  # type: ignore[no-untyped-call]
        scaled_queries, candidate_embeddings, offsets, (removal, blocks)
    )
    return cast(Tensor, result)


class _LogPartition(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        candidates: Tensor,
        offsets: Tensor | None,
        plan: tuple[Removal | None, Blocks],
    ) -> Tensor:
        removal, blocks = plan
        result = queries.new_full((len(queries),), float("-inf"))
        keep = len(queries) * len(candidates) <= MOST_KEPT and any(ctx.needs_input_grad)
        kept: list[Tensor] = []  # block by block: exp(logits - peak), then peak
        for block in blocks.over(len(queries), len(candidates)):
            shares, peak = _exponentials(queries, candidates, offsets, removal, block)
            rows, _ = block
            result[rows] = torch.logaddexp(result[rows], shares.sum(dim=1).log_().add_(peak))
            if keep:
                kept += [shares, peak]
        ctx.save_for_backward(queries, candidates, offsets, result, *kept)
        ctx.plan = plan
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, candidates, offsets, result, *kept = ctx.saved_tensors
        removal, blocks = ctx.plan
        of_queries, of_candidates = torch.zeros_like(queries), torch.zeros_like(candidates)
        # log Q is a constant: its gradient is another pass over the exponentials.
        of_offsets = torch.zeros_like(offsets) if ctx.needs_input_grad[2] else None
        # Where nothing is left in any block, every peak is -inf: 0 is any finite number here.
        result = result.masked_fill(result == float("-inf"), 0)
        with torch.autocast(queries.device.type, enabled=False):
            for i, block in enumerate(blocks.over(len(queries), len(candidates))):
                if kept:
                    shares, peak = kept[2 * i], kept[2 * i + 1]
                else:
                    shares, peak = _exponentials(queries, candidates, offsets, removal, block)
                rows, columns = block
                weights = (peak - result[rows]).exp_().mul_(gradient[rows])  # [b]
                of_queries[rows].addcmul_(shares @ candidates[columns], weights[:, None])
                of_candidates[columns].addmm_(shares.T, queries[rows] * weights[:, None])
                if of_offsets is not None:
                    of_offsets[columns].addmv_(shares.T, weights)
        return of_queries, of_candidates, of_offsets, None


def _exponentials(
    queries: Tensor,
    candidates: Tensor,
    offsets: Tensor | None,
    removal: Removal | None,
    block: tuple[slice, slice],
) -> tuple[Tensor, Tensor]:
    """Compute ``exp(logits - peak)`` of a block [b, k] and its peak in each row [b]."""
    logits = block_logits(queries, candidates, offsets, removal, block)
    peak = logits.amax(dim=1)  # [b]; -inf where all of the block leaves
    finite = peak.masked_fill(peak == float("-inf"), 0)  # -inf less -inf would be NaN
    return logits.sub_(finite[:, None]).exp_(), peak
