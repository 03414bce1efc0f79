"""The one softmax that the losses share: positives against what is left of the candidates.

Dimensions: B queries, T positives a query, K candidates a query, D embedding width.
"""

import torch
from torch import Tensor

from recsys.foundations import ArgumentError, check_positive, check_shape


def contrast(positive_logits: Tensor, negative_logits: Tensor, removed: Tensor | None) -> Tensor:
    """Compute ``mean over t of logsumexp(all positives, kept negatives) - positive_t``.

    With no negative left and one positive, loss and gradient are exactly 0.

    Args:
        positive_logits: [B] or [B, T], float.
        negative_logits: [B, K], float.
        removed: [B, K], bool; True leaves the denominator, with a gradient of exactly 0. None:
            nothing does.

    Returns:
        [B], float, in nats.
    """
    if removed is not None:
        # -inf, not a large negative number: a hit must get a gradient of exactly zero.
        negative_logits = negative_logits.masked_fill(removed, float("-inf"))
    if positive_logits.dim() == 1:
        positive_logits = positive_logits[:, None]  # [B, T = 1]
    logits = torch.cat([positive_logits, negative_logits], dim=1)  # [B, T + K]
    return logits.logsumexp(dim=1) - positive_logits.mean(dim=1)


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
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


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


def score_candidates(scaled_queries: Tensor, candidate_embeddings: Tensor) -> Tensor:
    """Compute the inner products of each query with its candidates.

    Args:
        scaled_queries: [B, D].
        candidate_embeddings: [K, D], shared by the batch, or [B, K, D].

    Returns:
        [B, K].
    """
    candidates = widen(candidate_embeddings)
    if candidates.dim() == 2:
        return scaled_queries @ candidates.T
    return torch.bmm(candidates, scaled_queries[:, :, None]).squeeze(2)


def correct(
    scores: Tensor, biases: Tensor | None, log_q: Tensor | None, temperature: float | Tensor
) -> Tensor:
    """Turn scores into logits: ``scores + biases / temperature - log_q``.

    Args:
        scores: [B, K], already divided by the temperature.
        biases: [K] or [B, K]; part of the score, so the temperature divides them too.
        log_q: [K] or [B, K], nats; the temperature does not divide it.
        temperature: As in `scale_queries`.

    Returns:
        As `scores`.
    """
    if biases is not None:
        scores = scores + widen(biases) / temperature
    if log_q is not None:
        scores = scores - log_q.to(scores.dtype)
    return scores


def find_removed(
    positive_rows: Tensor | None, candidate_rows: Tensor, own_columns: Tensor | None
) -> Tensor | None:
    """Find the candidates that leave their row: accidental hits, and the query's own column.

    Args:
        positive_rows: [B] or [B, T], int64. None: accidental hits stay.
        candidate_rows: [K] or [B, K], int64.
        own_columns: [B], int64, or None.

    Returns:
        [B, K], bool; None if nothing can leave.
    """
    removed = None
    if positive_rows is not None:
        columns = positive_rows.reshape(len(positive_rows), -1).unbind(dim=1)  # T of [B]
        removed = columns[0][:, None] == candidate_rows  # [B, K]
        for column in columns[1:]:  # T is small, and [B, T, K] is not
            removed |= column[:, None] == candidate_rows
    if own_columns is not None:
        if removed is None:
            shape = (len(own_columns), candidate_rows.shape[-1])
            removed = torch.zeros(shape, dtype=torch.bool, device=candidate_rows.device)
        removed.scatter_(1, own_columns[:, None], value=True)
    return removed


def check_log_q_pair(positive_log_q: Tensor | None, sampled_log_q: Tensor | None) -> None:
    """Check that both sides are corrected or neither is.

    Raises:
        ArgumentError: Only one is given: half a correction is a bias of its own.
    """
    if (positive_log_q is None) != (sampled_log_q is None):
        raise ArgumentError("`positive_log_q` and `sampled_log_q` must both be given or both None.")


def check_optional(name: str, tensor: Tensor | None, *shape: int | None) -> None:
    """Check the shape of an argument that may be None.

    Raises:
        ShapeError: It is given and its shape differs.
    """
    if tensor is not None:
        check_shape(name, tensor, *shape)
