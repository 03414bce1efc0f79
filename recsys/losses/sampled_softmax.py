"""Sampled softmax with logQ correction.

Dimensions: B queries in the batch, T positives a query, S sampled candidates, D embedding width.
"""

import torch
from torch import Tensor

from recsys.foundations import check_shape
from recsys.losses import softmax_core as core
from recsys.losses.log_partition import log_partition
from recsys.losses.removal import Removal


def sampled_softmax_loss(
    query_embeddings: Tensor,
    positive_embeddings: Tensor,
    sampled_embeddings: Tensor,
    *,
    positive_rows: Tensor,
    sampled_rows: Tensor,
    positive_log_q: Tensor | None,
    sampled_log_q: Tensor | None,
    temperature: float | Tensor,
    positive_biases: Tensor | None = None,
    sampled_biases: Tensor | None = None,
    own_columns: Tensor | None = None,
    remove_accidental_hits: bool = True,
) -> Tensor:
    """Compute the cross-entropy of each positive against the sampled candidates.

    A softmax over the positive and S sampled candidates stands for the one over the catalogue:
    ``logit = (<query, candidate> + bias) / temperature - log_q``, which undoes the sampler's
    preferences. A sampled candidate that is a positive of the query (an accidental hit) leaves its
    row. With several positives all of them stand in the denominator, and the loss is the mean of
    their cross-entropies.

    Averaged over y ~ P, and where each candidate enters the sample on its own coin with chance Q,
    the gradient is 0 at scores log P + constant: that is what the correction is for. Of a single
    positive the gradient stays biased: as S grows it tends to the full softmax's divided by
    1 - P(positive) with accidental hits removed, and to the full softmax's with hits kept.

    Args:
        query_embeddings: [B, D], float.
        positive_embeddings: [B, D]; row b is the candidate that query b chose. Or [B, T, D].
        sampled_embeddings: [S, D], shared by all queries of the batch. Or [B, S, D].
        positive_rows: [B] or [B, T], int64, in the catalogue.
        sampled_rows: [S] or [B, S], int64, in the catalogue; repeats are allowed and stay.
        positive_log_q: [B] or [B, T], natural log of the positive's expected count in the sample.
            None with `sampled_log_q`: no correction.
        sampled_log_q: [S] or [B, S], likewise; finite (the sampler checks it). Adding one constant
            to both ``log_q`` changes nothing.
        temperature: Divides the scores, not ``log_q``; above 0. A scalar tensor if it is learned.
        positive_biases: [B] or [B, T]; part of the score. None: no bias.
        sampled_biases: [S] or [B, S], likewise.
        own_columns: [B], int64; the column that holds the query's own positive by construction
            (in-batch draws), which leaves its row even where accidental hits stay.
        remove_accidental_hits: False keeps accidental hits as ordinary candidates.

    Returns:
        [B], float32 or wider, in nats; not reduced, so that the caller can weigh the queries.

    Raises:
        ShapeError: Two arguments disagree in B, T, S or D.
        ArgumentError: `temperature` is not above 0; only one ``log_q`` is given.

    Source:
        "On using very large target vocabulary for neural machine translation", ACL 2015; logQ for
        two towers in "Sampling-bias-corrected neural modeling for large corpus item
        recommendations", RecSys 2019. Differs: Q is given, not estimated here.
    """
    core.check_log_q_pair(positive_log_q, sampled_log_q)
    _check_query_and_positives(
        query_embeddings, positive_embeddings, positive_rows, positive_log_q, positive_biases
    )
    _check_sampled(
        query_embeddings, sampled_embeddings, sampled_rows, sampled_log_q, sampled_biases
    )
    core.check_optional("own_columns", own_columns, len(query_embeddings))
    with torch.autocast(query_embeddings.device.type, enabled=False):
        queries = core.scale_queries(query_embeddings, temperature)  # [B, D]
        positive_logits = core.add_offsets(
            core.score_positives(queries, positive_embeddings),
            positive_biases,
            positive_log_q,
            temperature,
        )  # as positive_rows
        sum_negatives = _sum_shared if sampled_rows.dim() == 1 else _sum_own
        log_negatives = sum_negatives(
            queries,
            sampled_embeddings,
            core.combine_offsets(sampled_biases, sampled_log_q, temperature, queries.dtype),
            Removal(sampled_rows, positive_rows if remove_accidental_hits else None, own_columns),
        )  # [B]
        return core.contrast(positive_logits, log_negatives)


def _sum_shared(
    queries: Tensor, sampled_embeddings: Tensor, offsets: Tensor | None, removal: Removal
) -> Tensor:
    """Sum over one sample for all queries, in blocks that stay in the processor's cache."""
    return log_partition(
        queries,
        core.widen(sampled_embeddings),
        offsets,
        removal,
        row_block_size=256,
        candidate_block_size=4096,
    )


def _sum_own(
    queries: Tensor, sampled_embeddings: Tensor, offsets: Tensor | None, removal: Removal
) -> Tensor:
    """Sum over a sample for each query."""
    sampled = core.widen(sampled_embeddings)  # [B, S, D]
    logits = torch.bmm(sampled, queries[:, :, None]).squeeze(2)  # [B, S]
    if offsets is not None:
        logits = logits + offsets
    removed = removal.find(slice(0, logits.shape[0]), slice(0, logits.shape[1]))
    return core.log_sum(logits.masked_fill(removed, float("-inf")))


def _check_query_and_positives(
    query_embeddings: Tensor,
    positive_embeddings: Tensor,
    positive_rows: Tensor,
    positive_log_q: Tensor | None,
    positive_biases: Tensor | None,
) -> None:
    check_shape("query_embeddings", query_embeddings, None, None)
    batch, width = query_embeddings.shape
    if positive_embeddings.dim() == 3:
        check_shape("positive_embeddings", positive_embeddings, batch, None, width)
    else:
        check_shape("positive_embeddings", positive_embeddings, batch, width)
    shape = positive_embeddings.shape[:-1]  # [B] or [B, T]
    check_shape("positive_rows", positive_rows, *shape)
    core.check_optional("positive_log_q", positive_log_q, *shape)
    core.check_optional("positive_biases", positive_biases, *shape)


def _check_sampled(
    query_embeddings: Tensor,
    sampled_embeddings: Tensor,
    sampled_rows: Tensor,
    sampled_log_q: Tensor | None,
    sampled_biases: Tensor | None,
) -> None:
    batch, width = query_embeddings.shape
    if sampled_rows.dim() == 2:
        check_shape("sampled_rows", sampled_rows, batch, None)
    else:
        check_shape("sampled_rows", sampled_rows, None)
    shape = sampled_rows.shape  # [S] or [B, S]
    check_shape("sampled_embeddings", sampled_embeddings, *shape, width)
    core.check_optional("sampled_log_q", sampled_log_q, *shape)
    core.check_optional("sampled_biases", sampled_biases, *shape)
