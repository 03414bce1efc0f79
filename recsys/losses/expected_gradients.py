"""The gradients that sums over candidates get from the losses they stand in.

With them a sum's own gradients can be computed along with it (`block_sum`). Each is a function of
the queries' rows in a block and of their sums.

Dimensions: B queries, T positives a query; b queries in a block.
"""

from torch import Tensor

from recsys.losses.block_passes import Weigh
from recsys.losses.softmax_core import by_column, log_sum


def expect_weights(loss_weights: Tensor | None) -> Weigh | None:
    """Expect the gradient of a term of the loss: the loss's weight [B]. None: 1."""
    if loss_weights is None:
        return None
    weights = loss_weights.detach()
    return lambda rows, sums: weights[rows].to(sums.dtype)


def expect_of_difference(
    positive_logits: Tensor, positive_weights: Tensor | None, loss_weights: Tensor | None
) -> Weigh:
    """Expect the gradient of ``sum over t of weight_t * (log sum - logit_t)``; 0 at -inf.

    Args:
        positive_logits: [B] or [B, T].
        positive_weights: Likewise. None: they sum to 1.
        loss_weights: [B]. None: 1.
    """
    weights = total_weights(positive_logits, positive_weights, loss_weights)
    return lambda rows, sums: weights[rows].masked_fill(sums == float("-inf"), 0)


def expect_of_contrast(
    positive_logits: Tensor, positive_weights: Tensor | None, loss_weights: Tensor | None
) -> Weigh:
    """Expect the gradient of `contrast`: the negatives' share in the denominator; 0 at -inf.

    Args:
        positive_logits: [B] or [B, T].
        positive_weights: Likewise; of weight 0 is padding. None: they sum to 1.
        loss_weights: [B]. None: 1.
    """
    logits = by_column(positive_logits.detach())
    if positive_weights is not None:
        logits = logits.masked_fill(positive_weights.reshape(logits.shape) == 0, float("-inf"))
    positives = log_sum(logits) if logits.shape[1] > 1 else logits.squeeze(1)
    weights = total_weights(positive_logits, positive_weights, loss_weights)

    def weigh(rows: slice, sums: Tensor) -> Tensor:
        # As the derivative of logaddexp is computed, so that both agree to the last digits.
        expected = weights[rows] / (1 + (positives[rows] - sums).exp())
        # Of padding alone without a negative the share would be NaN.
        return expected.masked_fill(sums == float("-inf"), 0)

    return weigh


def total_weights(
    positive_logits: Tensor, positive_weights: Tensor | None, loss_weights: Tensor | None
) -> Tensor:
    """Sum the weights of each query's positives, and multiply by its loss's: [B]."""
    if positive_weights is None:
        totals = positive_logits.new_ones(len(positive_logits))
    else:
        totals = by_column(positive_weights.detach()).sum(dim=1).to(positive_logits.dtype)
    return totals if loss_weights is None else totals * loss_weights.detach()
