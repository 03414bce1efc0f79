"""Sums over the catalogue of what depends on a candidate's probability alone."""

from collections.abc import Callable

from torch import Tensor

from recsys.sampling.proposal import Proposal

_BLOCK = 1 << 20  # levels at a time: a few temporary arrays of 8 MB


def sum_over_catalogue(proposal: Proposal, value: Callable[[Tensor], Tensor]) -> float:
    """Sum a function of the log probability over all candidates; O(levels).

    Args:
        proposal: Whose probabilities they are.
        value: From log probabilities [K], float64, to what is summed: [K].
    """
    levels = zip(*(part.split(_BLOCK) for part in proposal.levels()), strict=True)
    return sum(float((value(log_p) * numbers).sum()) for log_p, numbers in levels)
