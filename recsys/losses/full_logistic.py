"""Logistic regression over the whole catalogue: one binary classification a candidate.

Dimensions: B queries, T positives a query, or P of all queries, C candidates in the catalogue, D
embedding width.
"""

import torch
from torch import Tensor

from recsys.losses import softmax_core as core
from recsys.losses.blocks import Blocks
from recsys.losses.catalogue_logits import CatalogueLogits, compute_catalogue_logits
from recsys.losses.expected_gradients import expect_weights
from recsys.losses.sigmoid_core import positive_cross_entropy
from recsys.losses.softplus_sum import softplus, softplus_sum


def full_logistic_loss(
    query_embeddings: Tensor,
    catalogue_embeddings: Tensor,
    *,
    positive_rows: Tensor,
    temperature: float | Tensor,
    positive_weights: Tensor | None = None,
    positive_target: float = 1.0,
    catalogue_biases: Tensor | None = None,
    catalogue_mask: Tensor | None = None,
    query_rows: Tensor | None = None,
    row_block_size: int | None = None,
    catalogue_block_size: int | None = None,
    loss_weights: Tensor | None = None,
    product_dtype: torch.dtype | None = None,
) -> Tensor:
    """Compute the logistic loss of the positives against all other candidates.

    With ``u = (<query, candidate> + bias) / temperature`` the loss is ``-log sigma(u)`` summed over
    the positives and ``-log sigma(-u)`` summed over the rest. Averaged over y ~ P its gradient is 0
    at scores log(P / (1 - P)). Time is O(B C D), memory one block of logits and, for the gradient,
    [C, D]; for each thread where C is up to 2^15.

    Args:
        query_embeddings: [B, D], float.
        catalogue_embeddings: [C, D]; row r of the catalogue is candidate r.
        positive_rows: [B] or [B, T], int64, in [0, C).
        temperature: Divides the scores; above 0. A scalar tensor if it is learned.
        positive_weights: As `positive_rows`, at least 0. Of weight 0 is padding: the candidate is
            then one of the rest. None: 1 each.
        positive_target: Target of each positive, above 0, at most 1.
        catalogue_biases: [C]; part of the score. None: no bias.
        catalogue_mask: [B, C], bool; True is considered. Positives are, whatever it says. None:
            all are considered.
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

    Returns:
        [B], or [P] with `query_rows`, float32 or wider, in nats; not reduced. It grows with C.

    Raises:
        ShapeError: Two arguments disagree in B, T, P, C or D.
        ArgumentError: `temperature` or a block size is not above 0, `positive_target` is out of
            range, a row is none of the catalogue or of the queries, or there are both a mask and
            `query_rows`.

    Source:
        "Candidate sampling algorithms reference", TensorFlow, 2016.
    """
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
        positives = positive_cross_entropy(
            logits.positive_logits, logits.positive_weights, positive_target
        )
        blocks = logits.blocks(row_block_size, catalogue_block_size)
        return positives + _sum_over_rest(logits, catalogue_mask, blocks, product_dtype)


def _sum_over_rest(
    logits: CatalogueLogits,
    catalogue_mask: Tensor | None,
    blocks: Blocks | None,
    product_dtype: torch.dtype | None,
) -> Tensor:
    """Sum ``log(1 + exp(logit))`` over all candidates but the row's positives: [P]."""
    own_rows = core.drop_padding(logits.positive_rows, logits.positive_weights)
    sums = softplus_sum(
        logits.queries,
        logits.catalogue,
        logits.offsets,
        logits.remove(own_rows, catalogue_mask) if logits.query_rows is None else None,
        weigh=expect_weights(logits.sum_by_query(logits.loss_weights)),
        blocks=blocks,
        product_dtype=product_dtype,
    )
    if logits.query_rows is None:
        return sums
    of_positives = softplus(logits.positive_logits).masked_fill(own_rows < 0, 0)
    return logits.by_row(sums) - of_positives.sum(dim=1)
