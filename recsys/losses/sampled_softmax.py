"""Sampled softmax with logQ correction.

Dimensions: B queries in the batch, T positives a query, S sampled candidates, D embedding width.
"""

import torch
from torch import Tensor

from recsys.losses import softmax_core as core
from recsys.losses.expected_gradients import expect_of_contrast
from recsys.losses.sample_logits import SampledEmbeddings, compute_sample_logits


def sampled_softmax_loss(
    query_embeddings: Tensor,
    positive_embeddings: Tensor,
    sampled_embeddings: SampledEmbeddings,
    *,
    positive_rows: Tensor,
    sampled_rows: Tensor,
    positive_log_q: Tensor | None,
    sampled_log_q: Tensor | None,
    temperature: float | Tensor,
    positive_biases: Tensor | None = None,
    sampled_biases: Tensor | None = None,
    own_columns: Tensor | None = None,
    sampled_mask: Tensor | None = None,
    positive_weights: Tensor | None = None,
    remove_accidental_hits: bool = True,
    loss_weights: Tensor | None = None,
    product_dtype: torch.dtype | None = None,
) -> Tensor:
    """Compute the cross-entropy of each positive against the sampled candidates.

    A softmax over the positive and S sampled candidates stands for the one over the catalogue:
    ``logit = (<query, candidate> + bias) / temperature - log_q``, which undoes the sampler's
    preferences. A sampled candidate that is a positive of the query (an accidental hit) leaves its
    row. With several positives all of them stand in the denominator, and the loss is the weighted
    sum of their cross-entropies.

    Averaged over y ~ P, and where each candidate enters the sample on its own coin with chance Q,
    the gradient is 0 at scores log P + constant: that is what the correction is for. Of a single
    positive the gradient stays biased: as S grows it tends to the full softmax's divided by
    1 - P(positive) with accidental hits removed, and to the full softmax's with hits kept.

    Args:
        query_embeddings: [B, D], float.
        positive_embeddings: [B, D]; row b is the candidate that query b chose. Or [B, T, D].
        sampled_embeddings: [S, D], shared by all queries of the batch; or [B, S, D]; or a pair, of
            the first columns, [S1, D], and of the others, [B, S - S1, D] or `PlacedEmbeddings`.
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
        sampled_mask: [B, S], bool; True is considered. None: all are.
        positive_weights: As `positive_rows`; target probabilities, at least 0. Of weight 0 is
            padding: it stands in no denominator and removes nothing. None: 1 / T each.
        remove_accidental_hits: False keeps accidental hits as ordinary candidates.
        loss_weights: [B]; the factors, up to a common one, by which the losses will be weighed.
            They change no result: with them the gradients can be computed along with the losses.
            None: 1 each.
        product_dtype: torch.bfloat16 rounds the factors of the matrix products to it, where the
            sample is shared. None: none.

    Returns:
        [B], float32 or wider, in nats; not reduced, so that the caller can weigh the queries. 0,
        with gradient 0, where no negative is left beside one positive.

    Raises:
        ShapeError: Two arguments disagree in B, T, S or D.
        ArgumentError: `temperature` is not above 0; only one ``log_q`` is given.

    Source:
        "On using very large target vocabulary for neural machine translation", ACL 2015; logQ for
        two towers in "Sampling-bias-corrected neural modeling for large corpus item
        recommendations", RecSys 2019. Differs: Q is given, not estimated here.
    """
    core.check_log_q_pair(positive_log_q, sampled_log_q)
    with torch.autocast(query_embeddings.device.type, enabled=False):
        logits = compute_sample_logits(
            query_embeddings,
            positive_embeddings,
            sampled_embeddings,
            positive_rows=positive_rows,
            sampled_rows=sampled_rows,
            positive_log_q=positive_log_q,
            sampled_log_q=sampled_log_q,
            temperature=temperature,
            positive_biases=positive_biases,
            sampled_biases=sampled_biases,
            own_columns=own_columns,
            sampled_mask=sampled_mask,
            positive_weights=positive_weights,
            remove_accidental_hits=remove_accidental_hits,
            loss_weights=loss_weights,
            product_dtype=product_dtype,
        )
        expected = expect_of_contrast(logits.positive_logits, positive_weights, loss_weights)
        return core.contrast(logits.positive_logits, logits.log_sum(expected), positive_weights)
