"""Different rows among many."""

import numpy as np
import torch
from torch import Tensor


def unique_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Give the different rows, rising, and how often each comes.

    As `torch.unique` does; but NumPy sorts integers several times faster where the CPU has wide
    vectors, and the draws of a step are thousands.

    Args:
        rows: [K], int64, on the CPU.

    Returns:
        [U] and [U], int64.
    """
    unique, counts = np.unique(rows.numpy(), return_counts=True)
    return torch.from_numpy(unique), torch.from_numpy(counts)


def first_places(rows: Tensor) -> Tensor:
    """Give the places, rising, at which a row stands for the first time.

    Args:
        rows: [K], int64, not negative, on the CPU; ``K * (the largest + 1)`` is below 2^63.

    Returns:
        [U], int64.
    """
    number = max(len(rows), 1)
    keys = np.sort(rows.numpy() * number + np.arange(len(rows)))  # by row, then by place
    ordered = keys // number
    is_first = np.ones(len(rows), dtype=bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return torch.from_numpy(np.sort(keys[is_first] % number))
