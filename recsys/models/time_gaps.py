"""The time between two events of a history as a learned vector.

Dimensions: T tokens, n histories of width W, D embedding width.
"""

import torch
from torch import Tensor, nn

from recsys.data import NO_TIME
from recsys.models.history_blocks import HistoryBlock

_NUM_BUCKETS = 28  # the last begins at 2^26 seconds, 2.1 years
_UNKNOWN = _NUM_BUCKETS


class TimeGaps(nn.Module):
    """A learned vector for how long before an item the next older one of the history was met.

    Gaps are put into buckets: below one second, then one bucket for each doubling. One more stands
    for a gap that is not known: of the oldest item, and where a time is missing. Training hides all
    gaps of some histories, so that a history without times is nothing new at search.

    Args:
        dim: D.
        dropout: Share of the histories whose gaps training hides.
        init_std: Standard deviation of the first values.
    """

    def __init__(self, dim: int, *, dropout: float, init_std: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.vectors = nn.Parameter(torch.randn(_NUM_BUCKETS + 1, dim) * init_std)

    def forward(self, block: HistoryBlock) -> Tensor:
        """Give the vector of each token's gap: [T, D]."""
        buckets = torch.full_like(block.items, _UNKNOWN)
        if block.times is not None:
            buckets = gap_buckets(block.times, block.positions() == 0)
        if self.training and self.dropout > 0:
            hidden = torch.rand(len(block.owners), device=buckets.device) < self.dropout
            hidden = block.collect(hidden[:, None].expand(-1, block.width))
            buckets = buckets.masked_fill(hidden, _UNKNOWN)
        return self.vectors.index_select(0, buckets)


def gap_buckets(times: Tensor, oldest: Tensor) -> Tensor:
    """Put the time since the token before into buckets.

    Args:
        times: [T], int64, µs, oldest first within a history; `NO_TIME` where not known.
        oldest: [T], bool, which tokens are the first of a history.

    Returns:
        [T], int64: 0 below one second, then 1 + floor(log2(seconds)) up to the last bucket, behind
        which stands the one of gaps that are not known.
    """
    before = times.roll(1)
    unknown = oldest | (times == NO_TIME) | (before == NO_TIME)
    seconds = (times - before).masked_fill(unknown, 0) // 1_000_000
    # frexp is exact: seconds = mantissa * 2^exponent with the mantissa in [1/2, 1).
    buckets = torch.frexp(seconds.clamp(min=0).double()).exponent.long()
    return buckets.clamp(max=_NUM_BUCKETS - 1).masked_fill(unknown, _UNKNOWN)
