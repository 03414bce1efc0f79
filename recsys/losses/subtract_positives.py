"""The positive's term of a loss whose other term is an estimate over a sample.

Dimensions: B queries, T positives a query.
"""

import torch
from torch import Tensor

from recsys.losses.softmax_core import by_column


def subtract_positives(
    values: Tensor, positive_logits: Tensor, positive_weights: Tensor | None
) -> Tensor:
    """Compute ``sum over t of weight_t * (value - logit_t)``.

    Args:
        values: [B], float; -inf where there is no estimate.
        positive_logits: [B] or [B, T], float.
        positive_weights: As `positive_logits`; of weight 0 is padding, which gets a gradient of
            exactly 0. None: 1 / T each.

    Returns:
        [B]; 0, with gradient 0, where there is no estimate: the positive's term alone would drive
        its score up without end.
    """
    differences = values[:, None] - by_column(positive_logits)  # [B, T]
    unknown = (values == float("-inf"))[:, None]
    if positive_weights is None:
        return differences.masked_fill(unknown, 0).mean(dim=1)
    weights = positive_weights.reshape(differences.shape)
    left_out = torch.logical_or(unknown, weights == 0)
    return (differences.masked_fill(left_out, 0) * weights).sum(dim=1)
