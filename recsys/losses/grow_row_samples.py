"""Samples that grow row by row until each is worth enough.

Dimensions: B queries, b of them still short, N sampled candidates in a block.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from recsys.foundations import ArgumentError, check_positive, check_shape
from recsys.losses.effective_sample_size import WeightSums


@dataclass(frozen=True)
class GrownRows:
    """How far each row's sample grew.

    Attributes:
        num_samples: [B], int64, candidates drawn for each row.
        ess: [B], effective sample size over all of them.
        reached: [B], bool; whether ``ess`` is at least ``min_ess``. The other rows take the full
            softmax.
    """

    num_samples: Tensor
    ess: Tensor
    reached: Tensor


def grow_row_samples(
    draw_block: Callable[[Tensor], Tensor], num_rows: int, *, min_ess: float, max_samples: int
) -> GrownRows:
    """Draw blocks for the rows that are still short of ``min_ess``, until none is.

    As `grow_sample`, where each query has draws of its own: a row stops when it is worth enough,
    or when a further block would pass ``max_samples``.

    Args:
        draw_block: From rows of the batch, [b] int64, to the log importance weights [b, N] of one
            more block of theirs; N is the same every time.
        num_rows: B.
        min_ess: Effective sample size to reach; at least 0, where one block is enough.
        max_samples: Most candidates a row; at least 1. One block above it: none counts.

    Returns:
        What each row's sample is worth.

    Raises:
        ShapeError: A block has other rows than were asked for.
        ArgumentError: A number is out of its range, or a block is empty.

    Source:
        "Adaptive importance sampling to accelerate training of a neural probabilistic language
        model", IEEE TNN 2008.
    """
    if not min_ess >= 0:  # also refuses NaN
        raise ArgumentError(f"`min_ess` must be at least 0, got {min_ess}.")
    check_positive("max_samples", max_samples)
    active = torch.arange(num_rows)
    num_samples, ess = torch.zeros(num_rows, dtype=torch.int64), torch.zeros(num_rows)
    reached = torch.zeros(num_rows, dtype=torch.bool)
    sums: WeightSums | None = None
    drawn, width = 0, 0
    while len(active) and drawn + width <= max_samples:
        block = draw_block(active)
        check_shape("draw_block(rows)", block, len(active), None)
        width = block.shape[1]
        check_positive("the width of a block", width)
        if width > max_samples:
            break
        added = WeightSums.of(block)
        sums = added if sums is None else sums.plus(added)
        drawn += width
        worth = sums.effective_sample_size()
        ess[active], num_samples[active] = worth.to(ess), drawn
        reached[active] = worth >= min_ess
        short = ~reached[active]
        active = active[short]
        sums = WeightSums(sums.log_peak[short], sums.total[short], sums.squares[short])
    return GrownRows(num_samples, ess, reached)
