"""The full softmax of queries with many positives each, in one pass over blocks of logits.

Dimensions: B queries, P positives of all queries, C candidates in the catalogue, D embedding width;
b queries in a block, p positives of theirs.
"""

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from recsys.foundations import ArgumentError
from recsys.losses.block_gradients import Gradients, add_in_threads
from recsys.losses.block_sum import common_factor
from recsys.losses.blocks import Blocks, choose_blocks
from recsys.losses.log_partition import LogSumExp
from recsys.losses.products import PlainProducts


def grouped_softmax(
    scaled_queries: Tensor,
    catalogue: Tensor,
    offsets: Tensor | None,
    *,
    query_rows: Tensor,
    positive_rows: Tensor,
    loss_weights: Tensor | None,
    blocks: Blocks | None,
    smoothing: float = 0.0,
) -> Tensor:
    """Compute ``log Z - logit`` of each positive, Z of its query over the catalogue.

    The positives' logits are read off the block that Z is summed over, and their part of the
    gradient is written into its softmax before both go through the matrix products: three in all,
    and nothing is gathered for each positive. If the losses get other weights than was said, the
    backward pass does it all again.

    Args:
        scaled_queries: [B, D], float32 or wider; already divided by the temperature.
        catalogue: [C, D], same dtype.
        offsets: [C], same dtype, added to the logits. None: nothing is.
        query_rows: [P], int64, in [0, B), never falling.
        positive_rows: [P], int64, in [0, C).
        loss_weights: [P], what the losses will be weighed by, up to a factor. None: all alike.
        blocks: Of whole rows. None: what is fast.
        smoothing: The part of each positive's target that goes to the whole catalogue.

    Returns:
        [P], same dtype, in nats.
    """
    if loss_weights is None:
        loss_weights = scaled_queries.new_ones(len(query_rows))
    blocks = blocks or choose_blocks(scaled_queries.device, len(catalogue))
    starts = torch.searchsorted(query_rows, torch.arange(len(scaled_queries) + 1)).tolist()
    weights = loss_weights.detach().to(scaled_queries.dtype)
    plan = _Plan(query_rows, positive_rows, starts, blocks, weights, smoothing)
    losses = _GroupedSoftmax.apply(  # type: ignore[no-untyped-call]
        scaled_queries, catalogue, offsets, (plan, torch.is_grad_enabled())
    )
    return cast(Tensor, losses)


@dataclass(frozen=True)
class _Plan:
    """Which candidates the queries chose, and how to go through them.

    Attributes:
        query_rows: [P].
        rows: [P].
        starts: B + 1 numbers; query b's positives stand from starts[b] to before starts[b + 1].
        blocks: Of whole rows.
        weights: [P], what the losses will be weighed by, up to a factor.
        smoothing: The part of each target that goes to all candidates.
    """

    query_rows: Tensor
    rows: Tensor
    starts: list[int]
    blocks: Blocks
    weights: Tensor
    smoothing: float

    def places(self, queries: slice, num_candidates: int) -> tuple[slice, Tensor, Tensor]:
        """Give a block's positives: which of the P, their rows in the block, and places in it."""
        some = slice(self.starts[queries.start], self.starts[queries.stop])
        own = self.query_rows[some] - queries.start  # [p]
        return some, own, own * num_candidates + self.rows[some]

    def run(
        self,
        queries: Tensor,
        catalogue: Tensor,
        offsets: Tensor | None,
        *,
        weights: Tensor,
        needed: tuple[bool, ...],
    ) -> tuple[Tensor, Gradients]:
        """Compute the losses [P], and the gradients of their sum by the weights [P]."""
        products, kernel = PlainProducts(queries, catalogue, offsets), LogSumExp()
        losses = queries.new_empty(len(weights))

        def run(part: slice, gradients: Gradients) -> None:
            for rows, columns in self.blocks.over(part, len(catalogue)):
                some, own, places = self.places(rows, len(catalogue))
                logits, _ = products.logits(rows, columns)  # [b, C]
                target = logits.view(-1).index_select(0, places) * (1 - self.smoothing)  # [p]
                if self.smoothing > 0:
                    target += self.smoothing * logits.mean(dim=1).index_select(0, own)
                log_z, slopes = kernel.reduce(logits, None)
                losses[some] = log_z.index_select(0, own) - target
                if any(needed):
                    pulled = self._pull(slopes, own, places, weights[some])
                    ones = torch.ones_like(log_z)
                    gradients.add(products, pulled, (rows, columns), ones, ones)
                    del pulled
                del logits, slopes  # before the next block is made

        gradients = Gradients.zeros(queries, catalogue, offsets, needed)
        shape = len(queries), len(catalogue)
        add_in_threads(run, gradients, self.blocks, shape, queries.device)
        return losses, gradients

    def _pull(self, shares: Tensor, own: Tensor, places: Tensor, weights: Tensor) -> Tensor:
        """Turn shares [b, C] into the slopes of the block's losses times their weights [p]."""
        totals = weights.new_zeros(len(shares)).index_add_(0, own, weights)  # [b]
        slopes = shares.mul_(totals[:, None])
        if self.smoothing > 0:
            slopes.sub_(totals[:, None], alpha=self.smoothing / shares.shape[1])
        slopes.view(-1).index_add_(0, places, weights, alpha=self.smoothing - 1)
        return slopes


class _GroupedSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        catalogue: Tensor,
        offsets: Tensor | None,
        how: tuple[_Plan, bool],
    ) -> Tensor:
        plan, differentiable = how
        ctx.plan, needed = plan, ctx.needs_input_grad[:3] if differentiable else (False,) * 3
        losses, gradients = plan.run(
            queries, catalogue, offsets, weights=plan.weights, needed=needed
        )
        ctx.save_for_backward(queries, catalogue, offsets, *gradients.parts())
        return losses

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise ArgumentError(
                "`create_graph` must be False: a loss over the catalogue has no second derivative."
            )
        queries, catalogue, offsets, *parts = ctx.saved_tensors
        gradients, factor = Gradients(*parts), common_factor(gradient, ctx.plan.weights)
        if factor is None:
            needed = ctx.needs_input_grad[:3]
            with torch.autocast(queries.device.type, enabled=False):
                _, gradients = ctx.plan.run(
                    queries, catalogue, offsets, weights=gradient, needed=needed
                )
            factor = gradient.new_ones(())
        factor = factor.to(queries.dtype)
        return *gradients.scaled(factor.expand(len(queries)), factor), None
