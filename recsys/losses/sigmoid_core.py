"""The one sigmoid cross-entropy that the logistic losses share.

Dimensions: B queries, T positives a query.
"""

from torch import Tensor

from recsys.foundations import ArgumentError
from recsys.losses.softplus_sum import softplus


def positive_cross_entropy(
    positive_logits: Tensor, positive_weights: Tensor | None, target: float
) -> Tensor:
    """Compute ``sum over t of weight_t * (-target log sigma(u_t) - (1 - target) log sigma(-u_t))``.

    Args:
        positive_logits: [B] or [B, T], float.
        positive_weights: As `positive_logits`; 0 drops a positive, whatever its logit. None: 1.
        target: The share of a positive that counts as positive; above 0, at most 1.

    Returns:
        [B], float, in nats.

    Raises:
        ArgumentError: `target` is out of range.
    """
    if not 0 < target <= 1:
        raise ArgumentError(f"`positive_target` must be above 0 and at most 1, got {target}.")
    losses = target * softplus(-positive_logits)
    if target < 1:
        losses = losses + (1 - target) * softplus(positive_logits)
    if positive_weights is not None:
        losses = losses.masked_fill(positive_weights == 0, 0) * positive_weights
    return losses if losses.dim() == 1 else losses.sum(dim=1)
