"""Importance weights with the model's exact probabilities: the reference for small catalogues.

Dimensions: B queries, S sampled candidates.
"""

from torch import Tensor

from recsys.foundations import check_floats, check_shape
from recsys.losses.softmax_core import widen


def exact_importance_weights(log_weights: Tensor, log_partition: Tensor) -> Tensor:
    """Compute ``P / Q`` of each sampled candidate, with the exact P of the softmax.

    As weights of `monte_carlo_loss` they give the full softmax's gradient on average, for any S and
    however the sample was drawn: nothing is normalised over the sample. In exchange they need Z,
    a sum over the whole catalogue, and they do not sum to 1: with few draws their noise is larger
    than that of `importance_weights`, whose bias vanishes as 1 / S.

    Args:
        log_weights: [B, S] or [S], float; ``score / temperature - log_q``, with ``log_q`` the log
            of the expected count. -inf: weight 0.
        log_partition: [B] or [], float; log of the sum of ``exp(score / temperature)`` over the
            catalogue, in nats.

    Returns:
        As `log_weights`, float32 or wider; on average over samples they sum to 1.

    Raises:
        ShapeError: The two disagree in B.

    Source:
        The importance sampling estimator that "Quick training of probabilistic neural nets by
        importance sampling", AISTATS 2003, sets out from.
    """
    check_shape("log_partition", log_partition, *log_weights.shape[:-1])
    check_floats("log_weights", log_weights)
    return (widen(log_weights) - log_partition[..., None]).exp()
