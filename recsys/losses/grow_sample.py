"""A sample that grows until it is worth enough.

Dimensions: B queries, N sampled candidates in a block.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from recsys.foundations import ArgumentError, check_positive, check_shape
from recsys.losses.effective_sample_size import WeightSums


@dataclass(frozen=True)
class GrownSample:
    """How far a sample grew.

    Attributes:
        num_samples: Candidates in the blocks that count, the first of those taken.
        ess: [B]; effective sample size over all of them.
        ess_trace: [blocks, B]; the same after each block that counts.
        reached: [B], bool; all rows where the row of ``ess_quantile`` reached ``min_ess``; where
            the cap ended it, those whose own ``ess`` did. The others have no estimate that is worth
            as much, and take the full softmax.
    """

    num_samples: int
    ess: Tensor
    ess_trace: Tensor
    reached: Tensor


def grow_sample(
    blocks: Iterable[Tensor], *, min_ess: float, max_samples: int, ess_quantile: float = 0.0
) -> GrownSample:
    """Take blocks of draws until their effective sample size reaches ``min_ess``.

    As the model sharpens, its softmax moves away from the proposal, weights become unequal, and
    more draws are taken for the same worth. A block is taken (and so drawn) only if it is needed:
    not once the size is reached, and not where a block as wide as the last would pass
    ``max_samples``. A block that turns out wider and passes it is not counted.

    That the draws decide where they end adds a bias of its own: a stop is likelier after draws
    whose weights happen to be equal.

    Args:
        blocks: Each [B, N], float, log of ``exp(score / temperature) / Q``; N may differ between
            blocks, and is at least 1.
        min_ess: Effective sample size to reach; at least 0, where the first block is enough.
        max_samples: Most candidates to take; at least 1. One block above it: none counts.
        ess_quantile: Which row of the batch must reach ``min_ess``, as a share of the batch in
            rising order of size: 0 is the worst row, 1 the best; from 0 to 1.

    Returns:
        What the blocks that count are worth. They may also end before either limit.

    Raises:
        ShapeError: A block is not two-dimensional, or its B differs from the first block's.
        ArgumentError: There is no block, one is empty, or a number is out of its range.

    Source:
        "Adaptive importance sampling to accelerate training of a neural probabilistic language
        model", IEEE TNN 2008. Differs: one sample may serve a whole batch.
    """
    if not min_ess >= 0:  # also refuses NaN
        raise ArgumentError(f"`min_ess` must be at least 0, got {min_ess}.")
    check_positive("max_samples", max_samples)
    if not 0 <= ess_quantile <= 1:
        raise ArgumentError(f"`ess_quantile` must be from 0 to 1, got {ess_quantile}.")
    batch, num_samples = None, 0
    sums: WeightSums | None = None
    trace: list[Tensor] = []
    enough = False
    for block in blocks:
        check_shape("blocks", block, batch, None)
        batch, width = block.shape
        if width == 0:  # an endless row of them would never end
            raise ArgumentError("`blocks` must hold one candidate each or more, got an empty one.")
        if num_samples + width > max_samples:
            break
        added = WeightSums.of(block)
        sums = added if sums is None else sums.plus(added)
        num_samples += width
        trace.append(sums.effective_sample_size())
        enough = batch == 0 or bool(
            trace[-1].quantile(ess_quantile, interpolation="lower") >= min_ess
        )
        if enough or num_samples + width > max_samples:
            break
    if batch is None:
        raise ArgumentError("`blocks` must yield one block or more, got none.")
    ess = trace[-1] if trace else block.new_zeros(batch)
    ess_trace = torch.stack(trace) if trace else ess.new_zeros(0, batch)
    reached = torch.full_like(ess, enough, dtype=torch.bool) | (
        (ess >= min_ess) & (num_samples > 0)
    )
    return GrownSample(num_samples, ess, ess_trace, reached)
