"""The expected size of a sample whose size is left to chance."""

from collections.abc import Callable

import torch
from torch import Tensor

_BLOCK = 1 << 20  # rows at a time: a few temporary arrays of 8 MB


def sum_over_catalogue(
    log_expected_count: Callable[[Tensor], Tensor], num_candidates: int
) -> float:
    """Sum the expected counts of all candidates; O(C).

    Args:
        log_expected_count: From rows [K], int64, to their log Q: [K], float64.
        num_candidates: C, at least 1.
    """
    blocks = torch.arange(num_candidates).split(_BLOCK)
    return sum(float(log_expected_count(rows).exp().sum()) for rows in blocks)
