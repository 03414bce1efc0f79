"""The sum of the losses of many candidates as negatives of a binary classification, in blocks.

Dimensions: B queries, K candidates, D embedding width; b and k of a block.
"""

import torch
from torch import Tensor
from torch.nn import functional

from recsys.losses.block_passes import Plan, Weigh
from recsys.losses.block_sum import block_sum
from recsys.losses.blocks import Blocks
from recsys.losses.removed_places import RemovedPlaces

_ROWS_AT_ONCE = 64


def softplus(logits: Tensor) -> Tensor:
    """Compute ``log(1 + exp(logit))``, exact to the last digits at both ends; 0 at -inf.

    (`functional.softplus` gives its argument back above 20.)
    """
    return -functional.logsigmoid(-logits)


def softplus_sum(
    scaled_queries: Tensor,
    candidate_embeddings: Tensor,
    offsets: Tensor | None,
    removed: RemovedPlaces | None,
    *,
    weigh: Weigh | None = None,
    blocks: Blocks | None = None,
    product_dtype: torch.dtype | None = None,
) -> Tensor:
    """Compute ``sum over k of log(1 + exp(<query, candidate_k> + offset_k))`` for each query.

    As `block_sum`, whose arguments these are.

    Returns:
        [B]. 0, with gradient 0, where no candidate is left.
    """
    plan = Plan(_SumOfSoftplus(), removed, blocks, product_dtype, weigh)
    return block_sum(scaled_queries, candidate_embeddings, offsets, plan)


class _SumOfSoftplus:
    """The sum of log(1 + exp)."""

    def start(self, queries: Tensor) -> Tensor:
        """Give 0."""
        return queries.new_zeros(len(queries))

    def reduce(self, logits: Tensor, shift: Tensor | None) -> tuple[Tensor, Tensor]:
        """Give the sum, and the sigmoid."""
        if shift is not None:
            logits += shift[:, None]
        # Some rows at a time: what the function needs besides is as large as what it is given.
        sums = torch.cat([softplus(some).sum(dim=1) for some in logits.split(_ROWS_AT_ONCE)])
        return sums, logits.sigmoid_()

    def combine(self, total: Tensor, part: Tensor) -> Tensor:
        """Add."""
        return total + part

    def share(self, part: Tensor, total: Tensor) -> Tensor:  # noqa: ARG002
        """Give 1."""
        return torch.ones_like(part)
