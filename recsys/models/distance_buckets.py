"""Distances along a history put into buckets: fine for near ones, coarse for far ones."""

import torch
from torch import Tensor

NUM_BUCKETS = 32
_NUM_EXACT = 16


def distance_buckets(distances: Tensor) -> Tensor:
    """Give the bucket of each distance, in [0, NUM_BUCKETS).

    Distances below 16 have a bucket each; from there on a bucket for each quarter of a doubling
    (16, 19, 22.6, 26.9, 32, ...), the last for all from 216 on.

    Args:
        distances: Any shape, int64, at least 0.
    """
    octaves = torch.log2(distances.clamp(min=_NUM_EXACT).double() / _NUM_EXACT)
    far = _NUM_EXACT + (octaves * 4).long()
    return torch.where(distances < _NUM_EXACT, distances, far.clamp(max=NUM_BUCKETS - 1))
