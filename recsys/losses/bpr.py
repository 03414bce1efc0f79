"""Bayesian personalised ranking: each positive against each sampled candidate.

Dimensions: B queries in the batch, T positives a query, S sampled candidates, D embedding width.
"""

import torch
from torch import Tensor

from recsys.losses import softmax_core as core
from recsys.losses.sample_logits import SampledEmbeddings, compute_sample_logits
from recsys.losses.softplus_sum import softplus


def bpr_loss(
    query_embeddings: Tensor,
    positive_embeddings: Tensor,
    sampled_embeddings: SampledEmbeddings,
    *,
    positive_rows: Tensor,
    sampled_rows: Tensor,
    temperature: float | Tensor,
    positive_biases: Tensor | None = None,
    sampled_biases: Tensor | None = None,
    own_columns: Tensor | None = None,
    sampled_mask: Tensor | None = None,
    positive_weights: Tensor | None = None,
) -> Tensor:
    """Compute the mean over the sampled of ``-log sigma(positive logit - sampled logit)``.

    ``logit = (<query, candidate> + bias) / temperature``. A sampled candidate that is a positive of
    the query (an accidental hit) leaves its row. What is ranked above what depends on the sampler:
    there is no log Q in it. Memory is O(B S) also for a shared sample.

    Args:
        query_embeddings: [B, D], float.
        positive_embeddings: [B, D]; row b is the candidate that query b chose. Or [B, T, D].
        sampled_embeddings: [S, D], shared by all queries of the batch; or [B, S, D]; or a pair, of
            the first columns, [S1, D], and of the others, [B, S - S1, D] or `PlacedEmbeddings`.
        positive_rows: [B] or [B, T], int64, in the catalogue.
        sampled_rows: [S] or [B, S], int64, in the catalogue; repeats are allowed and stay.
        temperature: Divides the scores; above 0. A scalar tensor if it is learned.
        positive_biases: [B] or [B, T]; part of the score. None: no bias.
        sampled_biases: [S] or [B, S], likewise.
        own_columns: [B], int64; the column that holds the query's own positive by construction
            (in-batch draws), which leaves its row.
        sampled_mask: [B, S], bool; True is considered. None: all are.
        positive_weights: As `positive_rows`, at least 0. Of weight 0 is padding, which removes
            nothing. None: 1 / T each.

    Returns:
        [B], float32 or wider, in nats; not reduced. 0, with gradient 0, where no negative is left.

    Raises:
        ShapeError: Two arguments disagree in B, T, S or D.
        ArgumentError: `temperature` is not above 0.

    Source:
        "BPR: Bayesian personalized ranking from implicit feedback", UAI 2009. Differs: the mean
        over the sampled candidates instead of one; regularisation is the optimiser's.
    """
    with torch.autocast(query_embeddings.device.type, enabled=False):
        logits = compute_sample_logits(
            query_embeddings,
            positive_embeddings,
            sampled_embeddings,
            positive_rows=positive_rows,
            sampled_rows=sampled_rows,
            positive_log_q=None,
            sampled_log_q=None,
            temperature=temperature,
            positive_biases=positive_biases,
            sampled_biases=sampled_biases,
            own_columns=own_columns,
            sampled_mask=sampled_mask,
            positive_weights=positive_weights,
            remove_accidental_hits=True,
        )
        positives = core.by_column(logits.positive_logits)  # [B, T]
        sampled = logits.sampled_logits()  # [B, S]
        pairs = [softplus(sampled - one[:, None]).sum(dim=1) for one in positives.unbind(dim=1)]
        num_negatives = logits.count_left().clamp(min=1)  # where none is left, the sum is 0
        losses = torch.stack(pairs, dim=1) / num_negatives[:, None]  # [B, T]
        if positive_weights is None:
            return losses.mean(dim=1)
        weights = positive_weights.reshape(losses.shape)
        return (losses.masked_fill(weights == 0, 0) * weights).sum(dim=1)
