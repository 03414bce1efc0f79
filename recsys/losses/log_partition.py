"""The log of a softmax denominator over many candidates, in blocks.

Dimensions: B queries, K candidates, D embedding width; b and k of a block.
"""

import torch
from torch import Tensor

from recsys.losses.block_passes import Plan, Weigh
from recsys.losses.block_sum import block_sum
from recsys.losses.blocks import Blocks
from recsys.losses.removed_places import RemovedPlaces


def log_partition(
    scaled_queries: Tensor,
    candidate_embeddings: Tensor,
    offsets: Tensor | None,
    removed: RemovedPlaces | None,
    *,
    weigh: Weigh | None = None,
    blocks: Blocks | None = None,
    product_dtype: torch.dtype | None = None,
) -> Tensor:
    """Compute ``log of sum over k of exp(<query, candidate_k> + offset_k)`` for each query.

    As `block_sum`, whose arguments these are.

    Returns:
        [B]. -inf, with gradient 0, where no candidate is left.
    """
    plan = Plan(LogSumExp(), removed, blocks, product_dtype, weigh)
    return block_sum(scaled_queries, candidate_embeddings, offsets, plan)


class LogSumExp:
    """The log of the summed exp."""

    def start(self, queries: Tensor) -> Tensor:
        """Give -inf."""
        return queries.new_full((len(queries),), float("-inf"))

    def reduce(self, logits: Tensor, shift: Tensor | None) -> tuple[Tensor, Tensor]:
        """Give the log of the sum, and the softmax; of nothing but -inf that is 0."""
        peak = logits.amax(dim=1)  # [b]
        on_cpu = logits.device.type == "cpu"
        shares = torch.softmax(logits, dim=1, out=logits if on_cpu else None)
        empty = peak == float("-inf")  # the softmax is NaN there
        if not on_cpu:
            shares.masked_fill_(empty[:, None], 0)
        elif empty.any():
            shares[empty] = 0
        sums = peak - shares.amax(dim=1).log_()  # the largest share is 1 / sum of exp(logit - peak)
        sums.masked_fill_(empty, float("-inf"))
        return sums if shift is None else sums + shift, shares

    def combine(self, total: Tensor, part: Tensor) -> Tensor:
        """Add in the log domain."""
        return torch.logaddexp(total, part)

    def share(self, part: Tensor, total: Tensor) -> Tensor:
        """Give the part's share; 0 of nothing."""
        return (part - total.masked_fill(total == float("-inf"), 0)).exp_()
