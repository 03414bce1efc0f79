"""The log of a softmax denominator over many candidates, in blocks.

Dimensions: B queries, K candidates, D embedding width.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from recsys.losses.removal import Removal

# Up to here (64 MB in float32) the exponentials of the forward pass are kept, which spares the
# backward pass a third of its work; above, they are computed again.
_MOST_KEPT = 2**24


def log_partition(
    scaled_queries: Tensor,
    candidate_embeddings: Tensor,
    offsets: Tensor | None,
    removal: Removal | None,
    *,
    row_block_size: int,
    candidate_block_size: int,
) -> Tensor:
    """Compute ``log of sum over k of exp(<query, candidate_k> + offset_k)`` for each query.

    Logits live in blocks of ``row_block_size x candidate_block_size``; with more than 16.8 million
    of them in all, neither pass holds [B, K]. Gradients of the candidates are dense, [K, D].

    Args:
        scaled_queries: [B, D], float32 or wider; already divided by the temperature.
        candidate_embeddings: [K, D], same dtype.
        offsets: [K], same dtype, added to the logits. None: nothing is.
        removal: What leaves the sum, with a gradient of exactly 0. None: nothing does.
        row_block_size: Queries in a block, at least 1.
        candidate_block_size: Candidates in a block, at least 1.

    Returns:
        [B], same dtype. -inf, with gradient 0, where no candidate is left.
    """
    plan = _Plan(removal, row_block_size, candidate_block_size)
    result = _LogPartition.apply(  # type: ignore[no-untyped-call]
        scaled_queries, candidate_embeddings, offsets, plan
    )
    return cast(Tensor, result)


@dataclass(frozen=True)
class _Plan:
    """What leaves, and the blocks in which both passes go through the logits."""

    removal: Removal | None
    row_step: int
    column_step: int

    def blocks(self, num_rows: int, num_columns: int) -> Iterator[tuple[slice, slice]]:
        for row in range(0, num_rows, self.row_step):
            rows = slice(row, min(row + self.row_step, num_rows))
            for column in range(0, num_columns, self.column_step):
                yield rows, slice(column, min(column + self.column_step, num_columns))


class _LogPartition(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        candidates: Tensor,
        offsets: Tensor | None,
        plan: _Plan,
    ) -> Tensor:
        result = queries.new_full((len(queries),), float("-inf"))
        keep = len(queries) * len(candidates) <= _MOST_KEPT and any(ctx.needs_input_grad)
        kept: list[Tensor] = []  # block by block: exp(logits - peak), then peak
        for block in plan.blocks(len(queries), len(candidates)):
            shares, peak = _exponentials(queries, candidates, offsets, plan.removal, block)
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
        of_queries, of_candidates = torch.zeros_like(queries), torch.zeros_like(candidates)
        of_offsets = None if offsets is None else torch.zeros_like(offsets)
        # Where nothing is left in any block, every peak is -inf: 0 is any finite number here.
        result = result.masked_fill(result == float("-inf"), 0)
        with torch.autocast(queries.device.type, enabled=False):
            for i, block in enumerate(ctx.plan.blocks(len(queries), len(candidates))):
                if kept:
                    shares, peak = kept[2 * i], kept[2 * i + 1]
                else:
                    shares, peak = _exponentials(
                        queries, candidates, offsets, ctx.plan.removal, block
                    )
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
    rows, columns = block
    if offsets is None:
        logits = queries[rows] @ candidates[columns].T
    else:
        logits = torch.addmm(offsets[columns], queries[rows], candidates[columns].T)
    if removal is not None:
        # -inf, not a large negative number: a hit must get a gradient of exactly zero.
        logits.masked_fill_(removal.find(rows, columns), float("-inf"))
    peak = logits.amax(dim=1)  # [b]; -inf where all of the block leaves
    finite = peak.masked_fill(peak == float("-inf"), 0)  # -inf less -inf would be NaN
    return logits.sub_(finite[:, None]).exp_(), peak
