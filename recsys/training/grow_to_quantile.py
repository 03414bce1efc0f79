"""One sample for all rows of a batch, as large as most of them need."""

from dataclasses import replace

import torch

from recsys.training.importance_objective import DrawBlock, Grown, SampleGrowth, grow_shared


def grow_to_quantile(draw_block: DrawBlock, num_rows: int, growth: SampleGrowth) -> Grown:
    """Grow one sample for all rows, as `grow_shared`; rows that the quantile lets go keep theirs.

    `grow_shared` holds every row to `growth.min_ess`: those that the quantile lets go take the full
    softmax, which visits the whole catalogue if only one of them does. Here they keep the estimate
    of a sample that is large enough for the others. The full softmax is left to rows that are short
    where the sample ended at `growth.max_samples`.
    """
    grown = grow_shared(draw_block, num_rows, growth)
    worth = grown.ess.quantile(growth.ess_quantile, interpolation="lower")
    if worth < growth.min_ess:
        return grown
    return replace(grown, reached=torch.ones_like(grown.reached))
