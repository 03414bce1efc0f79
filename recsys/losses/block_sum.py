"""A sum over many candidates of a function of their logits, in blocks, with its gradient.

Dimensions: B queries, K candidates, D embedding width.
"""

from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor

from recsys.foundations import ArgumentError
from recsys.losses.block_gradients import Gradients
from recsys.losses.block_passes import BlockPasses, Plan

_ROUNDING = 8  # times the dtype's precision: what rounding alone may make of a gradient


def block_sum(
    scaled_queries: Tensor, candidate_embeddings: Tensor, offsets: Tensor | None, plan: Plan
) -> Tensor:
    """Sum a function of ``<query, candidate_k> + offset_k`` over the candidates, for each query.

    No thread holds more than a block of logits. Where a block holds whole rows, on a CPU, the
    gradients are computed along with the sums: three matrix products in all. That of the candidates
    holds if the sums get the gradient that `plan.weigh` expects, up to a factor; otherwise it and
    the logits are computed again: five. With blocks of a part of a row the backward pass computes
    the logits again: four. Gradients of the candidates are dense, [K, D], one for each thread.

    Args:
        scaled_queries: [B, D], float32 or wider; already divided by the temperature.
        candidate_embeddings: [K, D], same dtype.
        offsets: [K], same dtype, added to the logits. None: nothing is.
        plan: What to sum, and how.

    Returns:
        [B], same dtype.
    """
    result = _BlockSum.apply(  # type: ignore[no-untyped-call]
        scaled_queries, candidate_embeddings, offsets, (plan, torch.is_grad_enabled())
    )
    return cast(Tensor, result)


class _BlockSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        candidates: Tensor,
        offsets: Tensor | None,
        how: tuple[Plan, bool],
    ) -> Tensor:
        plan, differentiable = how
        ctx.plan, needed = plan, ctx.needs_input_grad[:3]
        passes = BlockPasses(queries, candidates, offsets, plan)
        if differentiable and any(needed) and passes.one_suffices:
            result, expected, gradients = passes.sum_and_differentiate(needed)
            ahead = (expected, *gradients.parts())
            ctx.save_for_backward(queries, candidates, offsets, result, *ahead)
        else:
            result = passes.sum()
            ctx.save_for_backward(queries, candidates, offsets, result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise ArgumentError(
                "`create_graph` must be False: a loss over shared candidates has no second "
                "derivative."
            )
        queries, candidates, offsets, result, *ahead = ctx.saved_tensors
        needs_queries, *needs_others = ctx.needs_input_grad[:3]
        of_queries = None
        if ahead:
            expected, of_queries, *of_others = ahead
            factor = common_factor(gradient, expected) if any(needs_others) else None
            if factor is not None or not any(needs_others):
                return *Gradients(of_queries, *of_others).scaled(gradient, factor), None
            needs_queries = False  # theirs holds whatever the weights
        with torch.autocast(queries.device.type, enabled=False):
            passes = BlockPasses(queries, candidates, offsets, ctx.plan)
            needed = (needs_queries, *needs_others)
            gradients = passes.differentiate(result, gradient, needed)
        if of_queries is not None:
            gradients = replace(gradients, of_queries=of_queries)
        return *gradients.scaled(gradient, None), None


def common_factor(gradient: Tensor, expected: Tensor) -> Tensor | None:
    """Find c where each gradient is ``c * expected``, up to rounding; None where there is none."""
    most = expected.abs().amax()
    if most.isnan():
        return None
    if not most > 0:
        return None if gradient.any() else torch.ones_like(most, dtype=torch.float64)
    wide, numbers = expected.double(), torch.finfo(gradient.dtype)
    factor = (gradient.double() @ wide) / (wide @ wide)
    # Below the smallest normal number rounding is no longer a share.
    floor = numbers.tiny * (1 + factor.abs())
    off = (gradient - factor * wide).abs()
    fits = off <= _ROUNDING * numbers.eps * (factor * wide).abs() + floor
    return factor if fits.all() else None
