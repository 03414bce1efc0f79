"""The one softmax that the losses share: positives against what is left of the candidates.

Dimensions: B queries, T positives a query, K candidates a query, D embedding width.
"""

import torch
from torch import Tensor

from recsys.foundations import (
    ArgumentError,
    ShapeError,
    check_floats,
    check_positive,
    check_shape,
)


def contrast(
    positive_logits: Tensor, log_negatives: Tensor, positive_weights: Tensor | None = None
) -> Tensor:
    """Compute ``sum over t of weight_t * (log(all exp(positives) + negatives) - positive_t)``.

    With no negative left and one positive, loss and gradient are exactly 0.

    Args:
        positive_logits: [B] or [B, T], float.
        log_negatives: [B], float; the log of the summed exp of the negatives' logits. -inf: none.
        positive_weights: As `positive_logits`; a positive of weight 0 is padding and stands in no
            denominator. None: 1 / T each.

    Returns:
        [B], float, in nats; 0, with gradient 0, for a query whose positives are all padding.
    """
    if positive_weights is None:
        if positive_logits.dim() == 1:
            return torch.logaddexp(positive_logits, log_negatives) - positive_logits
        log_positives = positive_logits.logsumexp(dim=1)
        return torch.logaddexp(log_positives, log_negatives) - positive_logits.mean(dim=1)
    logits = by_column(positive_logits)  # [B, T]
    weights = positive_weights.reshape(logits.shape)
    padding = weights == 0
    log_positives = log_sum(logits.masked_fill(padding, float("-inf")))
    # A query of padding alone may have no denominator at all, whose gradient would be NaN.
    log_negatives = log_negatives.masked_fill(padding.all(dim=1), 0)
    losses = torch.logaddexp(log_positives, log_negatives)[:, None] - logits
    return (losses.masked_fill(padding, 0) * weights).sum(dim=1)


def drop_padding(positive_rows: Tensor, positive_weights: Tensor | None) -> Tensor:
    """Give -1, which is no candidate's row, for positives of weight 0."""
    if positive_weights is None:
        return positive_rows
    return positive_rows.masked_fill(positive_weights == 0, -1)


def by_column(tensor: Tensor) -> Tensor:
    """Give [B, 1] for [B], and [B, T] as it is; also where B is 0."""
    return tensor[:, None] if tensor.dim() == 1 else tensor


def log_sum(logits: Tensor) -> Tensor:
    """Compute ``log of sum of exp`` over each row; -inf, with gradient 0, where all are -inf.

    (`torch.logsumexp` gives such a row the gradient NaN.)

    Args:
        logits: [B, K], float or -inf.

    Returns:
        [B].
    """
    empty = (logits == float("-inf")).all(dim=1)  # [B]
    sums = logits.masked_fill(empty[:, None], 0).logsumexp(dim=1)
    return sums.masked_fill(empty, float("-inf"))


def scale_queries(query_embeddings: Tensor, temperature: float | Tensor) -> Tensor:
    """Divide by the temperature on the narrow side: [B, D] instead of [B, K].

    Raises:
        ArgumentError: `temperature` is a number that is not above 0 (a tensor is not looked at:
            the module that learns it bounds it).
        ShapeError: `temperature` is a tensor with more than one value.
    """
    if isinstance(temperature, Tensor):
        check_shape("temperature", temperature)
    else:
        check_positive("temperature", temperature)
    return widen(query_embeddings) / temperature


def widen(tensor: Tensor) -> Tensor:
    """Give half-precision values in float32, wider ones as they are."""
    return tensor.to(_widened(tensor.dtype))


def score_positives(scaled_queries: Tensor, positive_embeddings: Tensor) -> Tensor:
    """Compute the inner products of each query with its own positives.

    Args:
        scaled_queries: [B, D].
        positive_embeddings: [B, D] or [B, T, D].

    Returns:
        [B] or [B, T].
    """
    if positive_embeddings.dim() == 3:
        scaled_queries = scaled_queries[:, None]  # [B, 1, D]
    return (scaled_queries * widen(positive_embeddings)).sum(dim=-1)


def add_offsets(
    scores: Tensor, biases: Tensor | None, log_q: Tensor | None, temperature: float | Tensor
) -> Tensor:
    """Turn scores into logits: ``scores + biases / temperature - log_q``.

    Args:
        scores: [...], already divided by the temperature.
        biases: Broadcast to `scores`; part of the score, so the temperature divides them too.
        log_q: Broadcast to `scores`, nats; the temperature does not divide it.
        temperature: As in `scale_queries`.

    Returns:
        As `scores`.
    """
    offsets = combine_offsets(biases, log_q, temperature, scores.dtype)
    return scores if offsets is None else scores + offsets


def combine_offsets(
    biases: Tensor | None, log_q: Tensor | None, temperature: float | Tensor, dtype: torch.dtype
) -> Tensor | None:
    """Compute ``biases / temperature - log_q`` in the given dtype; None if there is neither."""
    if biases is None:
        return None if log_q is None else -log_q.to(dtype)
    # A bias of -inf excludes a candidate at any temperature: the quotient's slope would be NaN.
    excluded = biases == float("-inf")
    offsets = widen(biases).masked_fill(excluded, 0) / temperature
    offsets = offsets.masked_fill(excluded, float("-inf"))
    return (offsets if log_q is None else offsets - log_q).to(dtype)


def check_log_q_pair(positive_log_q: Tensor | None, sampled_log_q: Tensor | None) -> None:
    """Check that both sides are corrected or neither is.

    Raises:
        ArgumentError: Only one is given: half a correction is a bias of its own.
    """
    if (positive_log_q is None) != (sampled_log_q is None):
        raise ArgumentError("`positive_log_q` and `sampled_log_q` must both be given or both None.")


def check_vectors(query_embeddings: Tensor, **others: Tensor) -> None:
    """Check that vectors are floating point, and of one precision once halves are widened.

    Raises:
        ArgumentError: One is not.
    """
    check_floats("query_embeddings", query_embeddings)
    wanted = _widened(query_embeddings.dtype)
    for name, vectors in others.items():
        check_floats(name, vectors)
        if _widened(vectors.dtype) != wanted:
            raise ArgumentError(
                f"`{name}` must be {wanted} as `query_embeddings` are, got {vectors.dtype}."
            )


def _widened(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def check_positives(name: str, positives: Tensor, axis: int) -> None:
    """Check that every query has one positive or more.

    Raises:
        ShapeError: The positives' axis has size 0.
    """
    if positives.dim() > axis and positives.shape[axis] == 0:
        raise ShapeError(
            f"`{name}` must hold one positive a query or more, got {list(positives.shape)}."
        )


def check_mask(name: str, mask: Tensor | None, *shape: int | None) -> None:
    """Check the shape of a mask that may be None, and that it holds booleans.

    Raises:
        ShapeError: It is given and its shape differs.
        ArgumentError: It holds something else.
    """
    check_optional(name, mask, *shape)
    if mask is not None and mask.dtype != torch.bool:
        raise ArgumentError(f"`{name}` must hold booleans, got {mask.dtype}.")


def check_optional(name: str, tensor: Tensor | None, *shape: int | None) -> None:
    """Check the shape of an argument that may be None.

    Raises:
        ShapeError: It is given and its shape differs.
    """
    if tensor is not None:
        check_shape(name, tensor, *shape)
