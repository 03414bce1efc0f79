"""Softmax over the whole catalogue, exactly.

Dimensions: B queries, T positives a query, or P of all queries, C candidates in the catalogue, D
embedding width.
"""

import torch
from torch import Tensor

from recsys.foundations import ArgumentError
from recsys.losses.blocks import Blocks, choose_blocks
from recsys.losses.catalogue_logits import CatalogueLogits, compute_catalogue_logits
from recsys.losses.expected_gradients import expect_weights, total_weights
from recsys.losses.grouped_softmax import grouped_softmax
from recsys.losses.label_smoothing import check_smoothing, label_smoothing_term
from recsys.losses.log_partition import log_partition
from recsys.losses.removed_places import RemovedPlaces


def full_softmax_loss(
    query_embeddings: Tensor,
    catalogue_embeddings: Tensor,
    *,
    positive_rows: Tensor,
    temperature: float | Tensor,
    positive_weights: Tensor | None = None,
    catalogue_biases: Tensor | None = None,
    catalogue_mask: Tensor | None = None,
    query_rows: Tensor | None = None,
    row_block_size: int | None = None,
    catalogue_block_size: int | None = None,
    loss_weights: Tensor | None = None,
    product_dtype: torch.dtype | None = None,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Compute ``sum over t of weight_t * (log Z - logit of positive_t)``, Z over the catalogue.

    ``logit = (<query, candidate> + bias) / temperature``. Time is O(B C D), as it must be; memory
    is one block of logits and, for the gradient, [C, D]; for each thread where C is up to 2^15.

    Args:
        query_embeddings: [B, D], float.
        catalogue_embeddings: [C, D]; row r of the catalogue is candidate r.
        positive_rows: [B] or [B, T], int64, in [0, C).
        temperature: Divides the scores; above 0. A scalar tensor if it is learned.
        positive_weights: As `positive_rows`; target probabilities. 0 drops a positive, as padding
            needs. None: 1 / T each.
        catalogue_biases: [C]; part of the score. None: no bias.
        catalogue_mask: [B, C], bool; True is considered. Positives stand in Z whatever it says.
            None: all are considered.
        query_rows: [P], int64, in [0, B): the query that chose each positive, where `positive_rows`
            and `positive_weights` are [P] and the loss is of each positive; the sum over the
            catalogue is then computed once a query, however many positives it has. Not with a
            mask. None: row b is of query b.
        row_block_size: Queries in a block of logits; the result does not depend on it. None: what
            is fast.
        catalogue_block_size: Candidates in a block, likewise; below C the backward pass computes
            the logits again.
        loss_weights: The factors, up to a common one, by which the losses will be weighed: [B], or
            [P] with `query_rows`. They change no result: with them the gradients can be computed
            along with the losses. None: 1 each.
        product_dtype: torch.bfloat16 rounds the factors of the matrix products to it. None: none.
        label_smoothing: The part of each positive's target that goes to the whole catalogue, in
            [0, 1). Above 0 neither with a mask nor with weights of
            positives, and with several positives a query only by `query_rows`.

    Returns:
        [B], or [P] with `query_rows`, float32 or wider, in nats; not reduced.

    Raises:
        ShapeError: Two arguments disagree in B, T, P, C or D.
        ArgumentError: `temperature` or a block size is not above 0, a row is none of the
            catalogue or of the queries, there are both a mask and `query_rows`, or
            `label_smoothing` is out of range, or does not go with the rest.
    """
    _check_smoothing(label_smoothing, positive_rows, positive_weights, catalogue_mask)
    with torch.autocast(query_embeddings.device.type, enabled=False):
        logits = compute_catalogue_logits(
            query_embeddings,
            catalogue_embeddings,
            positive_rows=positive_rows,
            temperature=temperature,
            positive_weights=positive_weights,
            catalogue_biases=catalogue_biases,
            catalogue_mask=catalogue_mask,
            query_rows=query_rows,
            loss_weights=loss_weights,
            product_dtype=product_dtype,
        )
        blocks = logits.blocks(row_block_size, catalogue_block_size)
        if logits.query_rows is not None and _is_one_pass(logits, blocks, product_dtype):
            return grouped_softmax(
                logits.queries,
                logits.catalogue,
                logits.offsets,
                query_rows=logits.query_rows,
                positive_rows=logits.positive_rows.squeeze(1),
                loss_weights=loss_weights,
                blocks=blocks,
                smoothing=label_smoothing,
            )
        weights = total_weights(logits.positive_logits, logits.positive_weights, loss_weights)
        log_z = log_partition(
            logits.queries,
            logits.catalogue,
            logits.offsets,
            None if catalogue_mask is None else _remove_masked(logits, catalogue_mask),
            weigh=expect_weights(logits.sum_by_query(weights)),
            blocks=blocks,
            product_dtype=product_dtype,
        )  # [B]
        losses = logits.by_row(log_z)[:, None] - logits.positive_logits  # [P, T]
        if logits.positive_weights is None:
            losses = losses.squeeze(1) if losses.shape[1] == 1 else losses.mean(dim=1)
            if label_smoothing == 0:
                return losses
            return losses + label_smoothing_term(logits, label_smoothing)
        # Of padding alone with all masked there is no denominator, and 0 times -inf would be NaN.
        losses = losses.masked_fill(logits.positive_weights == 0, 0)
        return (losses * logits.positive_weights).sum(dim=1)


def _check_smoothing(
    smoothing: float,
    positive_rows: Tensor,
    positive_weights: Tensor | None,
    catalogue_mask: Tensor | None,
) -> None:
    check_smoothing("label_smoothing", smoothing)
    plain = positive_rows.dim() == 1 and positive_weights is None and catalogue_mask is None
    if smoothing > 0 and not plain:
        raise ArgumentError(
            f"`label_smoothing` must be 0 with a mask, weights or several columns of positives, "
            f"got {smoothing}."
        )


def _is_one_pass(
    logits: CatalogueLogits, blocks: Blocks | None, product_dtype: torch.dtype | None
) -> bool:
    """Tell whether the loss of queries with several positives suits `grouped_softmax`.

    It needs whole rows, a device that need not be waited for, and positives in the order of their
    queries. Where products are rounded, the positives' part of the gradient must not be.
    """
    device, num_candidates = logits.queries.device, len(logits.catalogue)
    blocks = blocks or choose_blocks(device, num_candidates)
    query_rows, plain = logits.query_rows, logits.positive_weights is None and product_dtype is None
    return (
        query_rows is not None
        and len(query_rows) > 0
        and plain
        and device.type == "cpu"
        and blocks.num_columns >= num_candidates > 0
        and bool((query_rows[1:] >= query_rows[:-1]).all())
    )


def _remove_masked(logits: CatalogueLogits, catalogue_mask: Tensor) -> RemovedPlaces:
    """Remove what the mask excludes, except the query's own positives."""
    considered = catalogue_mask.clone()
    queries = torch.arange(len(considered), device=considered.device)
    for t, rows in enumerate(logits.positive_rows.unbind(dim=1)):
        weights = logits.positive_weights
        considered[queries, rows] |= True if weights is None else weights[:, t] != 0
    return logits.remove(None, considered)
