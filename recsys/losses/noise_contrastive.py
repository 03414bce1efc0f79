"""Noise-contrastive estimation of the softmax.

Dimensions: B queries in the batch, T positives a query, S sampled candidates, D embedding width.
"""

import torch
from torch import Tensor

from recsys.losses.sample_logits import SampledEmbeddings, compute_sample_logits
from recsys.losses.sigmoid_core import positive_cross_entropy


def noise_contrastive_loss(
    query_embeddings: Tensor,
    positive_embeddings: Tensor,
    sampled_embeddings: SampledEmbeddings,
    *,
    positive_rows: Tensor,
    sampled_rows: Tensor,
    positive_log_q: Tensor,
    sampled_log_q: Tensor,
    temperature: float | Tensor,
    positive_biases: Tensor | None = None,
    sampled_biases: Tensor | None = None,
    own_columns: Tensor | None = None,
    sampled_mask: Tensor | None = None,
    positive_weights: Tensor | None = None,
    positive_target: float = 1.0,
    loss_weights: Tensor | None = None,
    product_dtype: torch.dtype | None = None,
) -> Tensor:
    """Compute the loss of telling the positives from the sample, both corrected by log Q.

    With ``u = (<query, candidate> + bias) / temperature - log_q`` the loss is ``-log sigma(u)``
    summed over the positives and ``-log sigma(-u)`` summed over the sample. Averaged over y ~ P its
    gradient is 0 at scores log P, without a constant, whatever Q: the scores normalise themselves.
    Accidental hits stay, as the derivation asks: noise may draw the positive too.

    Args:
        query_embeddings: [B, D], float.
        positive_embeddings: [B, D]; row b is the candidate that query b chose. Or [B, T, D].
        sampled_embeddings: [S, D], shared by all queries of the batch; or [B, S, D]; or a pair, of
            the first columns, [S1, D], and of the others, [B, S - S1, D] or `PlacedEmbeddings`.
        positive_rows: [B] or [B, T], int64, in the catalogue.
        sampled_rows: [S] or [B, S], int64, in the catalogue; repeats are allowed and stay.
        positive_log_q: [B] or [B, T], natural log of the positive's expected count in the sample,
            the count itself and not its share: a constant added to it changes the optimum.
        sampled_log_q: [S] or [B, S], likewise; finite (the sampler checks it).
        temperature: Divides the scores, not ``log_q``; above 0. A scalar tensor if it is learned.
        positive_biases: [B] or [B, T]; part of the score. None: no bias.
        sampled_biases: [S] or [B, S], likewise.
        own_columns: [B], int64; the column that holds the query's own positive by construction
            (in-batch draws), which leaves its row even though accidental hits stay.
        sampled_mask: [B, S], bool; True is considered. None: all are.
        positive_weights: As `positive_rows`, at least 0. Of weight 0 is padding.
            None: 1 each.
        positive_target: Target of each positive, above 0, at most 1; below 1 (TensorFlow: 1 / T)
            the optimum is another.
        loss_weights: [B]; the factors, up to a common one, by which the losses will be weighed.
            They change no result: with them the gradients can be computed along with the losses.
            None: 1 each.
        product_dtype: torch.bfloat16 rounds the factors of the matrix products to it, where the
            sample is shared. None: none.

    Returns:
        [B], float32 or wider, in nats; not reduced. Where no negative is left, the positives' part.

    Raises:
        ShapeError: Two arguments disagree in B, T, S or D.
        ArgumentError: `temperature` is not above 0, or `positive_target` is out of range.

    Source:
        "Noise-contrastive estimation of unnormalized statistical models, with applications to
        natural image statistics", JMLR 2012; for a softmax over words "A fast and simple algorithm
        for training neural probabilistic language models", ICML 2012. Differs: Q is an expected
        count, which holds the number of noise samples, so that any kind of draw will do.
    """
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
            remove_accidental_hits=False,
            loss_weights=loss_weights,
            product_dtype=product_dtype,
        )
        positives = positive_cross_entropy(
            logits.positive_logits, positive_weights, positive_target
        )
        return positives + logits.softplus_sum()
