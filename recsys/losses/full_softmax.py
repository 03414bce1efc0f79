"""Softmax over the whole catalogue, exactly.

Dimensions: B queries, T positives a query, C candidates in the catalogue, D embedding width.
"""

import torch
from torch import Tensor

from recsys.foundations import check_positive, check_shape
from recsys.losses import softmax_core as core
from recsys.losses.log_partition import log_partition


def full_softmax_loss(
    query_embeddings: Tensor,
    catalogue_embeddings: Tensor,
    *,
    positive_rows: Tensor,
    temperature: float | Tensor,
    positive_weights: Tensor | None = None,
    catalogue_biases: Tensor | None = None,
    row_block_size: int = 256,
    catalogue_block_size: int = 4096,
) -> Tensor:
    """Compute ``sum over t of weight_t * (log Z - logit of positive_t)``, Z over the catalogue.

    ``logit = (<query, candidate> + bias) / temperature``. Time is O(B C D), as it must be; memory
    is one block of logits and, for the gradient, [C, D].

    Args:
        query_embeddings: [B, D], float.
        catalogue_embeddings: [C, D]; row r of the catalogue is candidate r.
        positive_rows: [B] or [B, T], int64, in [0, C).
        temperature: Divides the scores; above 0. A scalar tensor if it is learned.
        positive_weights: As `positive_rows`; target probabilities. 0 drops a positive, as padding
            needs. None: 1 / T each.
        catalogue_biases: [C]; part of the score. None: no bias.
        row_block_size: Queries in a block of logits; the result does not depend on it.
        catalogue_block_size: Candidates in a block, likewise.

    Returns:
        [B], float32 or wider, in nats; not reduced.

    Raises:
        ShapeError: Two arguments disagree in B, T, C or D.
        ArgumentError: `temperature` or a block size is not above 0.
    """
    _check_shapes(
        query_embeddings, catalogue_embeddings, positive_rows, positive_weights, catalogue_biases
    )
    check_positive("row_block_size", row_block_size)
    check_positive("catalogue_block_size", catalogue_block_size)
    rows = positive_rows.reshape(len(query_embeddings), -1)  # [B, T]
    with torch.autocast(query_embeddings.device.type, enabled=False):
        queries = core.scale_queries(query_embeddings, temperature)  # [B, D]
        catalogue = core.widen(catalogue_embeddings)
        offsets = core.combine_offsets(catalogue_biases, None, temperature, queries.dtype)  # [C]
        log_z = log_partition(
            queries,
            catalogue,
            offsets,
            None,
            row_block_size=row_block_size,
            candidate_block_size=catalogue_block_size,
        )  # [B]
        positive_logits = core.score_positives(queries, catalogue[rows])  # [B, T]
        if offsets is not None:
            positive_logits = positive_logits + offsets[rows]
        losses = log_z[:, None] - positive_logits  # [B, T]
        if positive_weights is None:
            return losses.mean(dim=1)
        return (losses * positive_weights.reshape(rows.shape)).sum(dim=1)


def _check_shapes(
    query_embeddings: Tensor,
    catalogue_embeddings: Tensor,
    positive_rows: Tensor,
    positive_weights: Tensor | None,
    catalogue_biases: Tensor | None,
) -> None:
    check_shape("query_embeddings", query_embeddings, None, None)
    batch, width = query_embeddings.shape
    check_shape("catalogue_embeddings", catalogue_embeddings, None, width)
    if positive_rows.dim() == 2:
        check_shape("positive_rows", positive_rows, batch, None)
    else:
        check_shape("positive_rows", positive_rows, batch)
    core.check_optional("positive_weights", positive_weights, *positive_rows.shape)
    core.check_optional("catalogue_biases", catalogue_biases, len(catalogue_embeddings))
