"""Softmax over the batch's own positives, and further candidates behind them.

Dimensions: B queries, K candidates of which the first B are the positives, D embedding width.
"""

import torch
from torch import Tensor

from recsys.foundations import ShapeError, check_count, check_integers, check_shape
from recsys.losses import softmax_core as core
from recsys.losses.expected_gradients import expect_of_contrast
from recsys.losses.log_partition import log_partition
from recsys.losses.products import check_product_dtype
from recsys.losses.removal import Removal
from recsys.losses.removed_places import RemovedPlaces


def in_batch_softmax_loss(
    query_embeddings: Tensor,
    candidate_embeddings: Tensor,
    *,
    candidate_rows: Tensor | None,
    candidate_log_q: Tensor | None,
    temperature: float | Tensor,
    candidate_biases: Tensor | None = None,
    candidate_mask: Tensor | None = None,
    num_hard_negatives: int | None = None,
    loss_weights: Tensor | None = None,
    product_dtype: torch.dtype | None = None,
) -> Tensor:
    """Compute the cross-entropy of each query's positive against the batch's candidates.

    Query b's positive is candidate b. In this order: divide by the temperature, subtract
    ``log_q``, remove accidental hits, mask, keep the hardest.

    Args:
        query_embeddings: [B, D], float.
        candidate_embeddings: [K, D], K at least B; those from B on are extra negatives.
        candidate_rows: [K], int64; a candidate with the row of the query's positive leaves that
            query's denominator. None: every other candidate stays.
        candidate_log_q: [K], natural log of the expected count; None: no correction.
        temperature: Divides the scores, not ``log_q``; above 0. A scalar tensor if it is learned.
        candidate_biases: [K]; part of the score. None: no bias.
        candidate_mask: [B, K], bool; True is considered. The positive is whatever it says.
        num_hard_negatives: Keep only so many negatives of the highest logits a query; if there are
            fewer, all; logits are then held as a whole, O(B K). None: keep all.
        loss_weights: [B]; the factors, up to a common one, by which the losses will be weighed.
            They change no result: with them the gradients can be computed along with the losses.
            None: 1 each.
        product_dtype: torch.bfloat16 rounds the factors of the matrix products to it; not with
            `num_hard_negatives`. None: none.

    Returns:
        [B], float32 or wider, in nats; not reduced. 0, with gradient 0, where no negative is left.

    Raises:
        ShapeError: Two arguments disagree in B, K or D, or K is below B.
        ArgumentError: `temperature` or `num_hard_negatives` is not above 0, or `product_dtype`
            cannot be had.

    Source:
        "Sampling-bias-corrected neural modeling for large corpus item recommendations", RecSys
        2019. Differs: Q is given, not estimated here, and never clipped.
    """
    _check_shapes(query_embeddings, candidate_embeddings, candidate_mask)
    for name, given in (
        ("candidate_rows", candidate_rows),
        ("candidate_log_q", candidate_log_q),
        ("candidate_biases", candidate_biases),
    ):
        core.check_optional(name, given, len(candidate_embeddings))
    core.check_vectors(query_embeddings, candidate_embeddings=candidate_embeddings)
    if candidate_rows is not None:
        check_integers("candidate_rows", candidate_rows)
    core.check_optional("loss_weights", loss_weights, len(query_embeddings))
    with torch.autocast(query_embeddings.device.type, enabled=False):
        queries = core.scale_queries(query_embeddings, temperature)  # [B, D]
        candidates = core.widen(candidate_embeddings)
        offsets = core.combine_offsets(
            candidate_biases, candidate_log_q, temperature, queries.dtype
        )  # [K]
        positives = core.score_positives(queries, candidates[: len(queries)])  # [B]
        if offsets is not None:
            positives = positives + offsets[: len(queries)]
        removed = _find_removed(candidates, len(queries), candidate_rows, candidate_mask)
        check_product_dtype(product_dtype, queries, shared=num_hard_negatives is None)
        if num_hard_negatives is not None:
            logits = queries @ candidates.T if offsets is None else queries @ candidates.T + offsets
            return core.contrast(positives, _sum_hardest(logits, removed, num_hard_negatives))
        negatives = log_partition(
            queries,
            candidates,
            offsets,
            removed,
            weigh=expect_of_contrast(positives, None, loss_weights),
            product_dtype=product_dtype,
        )
        return core.contrast(positives, negatives)


def _sum_hardest(logits: Tensor, removed: RemovedPlaces, num_hard_negatives: int) -> Tensor:
    """Sum the exp of the highest logits that are left: [B], its log."""
    check_count("num_hard_negatives", num_hard_negatives)
    leaves = removed.find()
    if leaves is not None:
        logits = logits.masked_fill(leaves, float("-inf"))
    return core.log_sum(logits.topk(min(num_hard_negatives, logits.shape[1]), dim=1).values)


def _find_removed(
    candidates: Tensor, batch: int, candidate_rows: Tensor | None, candidate_mask: Tensor | None
) -> RemovedPlaces:
    columns = torch.arange(len(candidates), device=candidates.device)
    if candidate_rows is None:
        removal = Removal(columns, None, columns[:batch], candidate_mask)
    else:
        removal = Removal(candidate_rows, candidate_rows[:batch], columns[:batch], candidate_mask)
    return RemovedPlaces(removal, batch, len(candidates))


def _check_shapes(
    query_embeddings: Tensor, candidate_embeddings: Tensor, candidate_mask: Tensor | None
) -> None:
    check_shape("query_embeddings", query_embeddings, None, None)
    batch, width = query_embeddings.shape
    check_shape("candidate_embeddings", candidate_embeddings, None, width)
    if len(candidate_embeddings) < batch:
        raise ShapeError(
            f"`candidate_embeddings` must begin with one positive for each of the {batch} queries, "
            f"got {len(candidate_embeddings)} rows."
        )
    core.check_mask("candidate_mask", candidate_mask, batch, len(candidate_embeddings))
