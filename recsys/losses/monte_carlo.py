"""The softmax gradient from candidates that the model itself drew, or that are weighed as if.

Dimensions: B queries in the batch, T positives a query, S sampled candidates, D embedding width.
"""

import torch
from torch import Tensor

from recsys.foundations import check_shape
from recsys.losses.placeholder_rows import placeholder_rows
from recsys.losses.sample_logits import SampleLogits, compute_sample_logits
from recsys.losses.subtract_positives import subtract_positives


def monte_carlo_loss(
    query_embeddings: Tensor,
    positive_embeddings: Tensor,
    sampled_embeddings: Tensor,
    *,
    temperature: float | Tensor,
    sampled_weights: Tensor | None = None,
    positive_rows: Tensor | None = None,
    sampled_rows: Tensor | None = None,
    positive_biases: Tensor | None = None,
    sampled_biases: Tensor | None = None,
    own_columns: Tensor | None = None,
    sampled_mask: Tensor | None = None,
    positive_weights: Tensor | None = None,
) -> Tensor:
    """Compute ``sum over j of weight_j * score_j / temperature - score of the positive``.

    Its gradient, with the weights as constants, estimates the full softmax's, which is the
    positive's score against the mean score under the softmax: without bias where the sampled come
    from the softmax itself and weigh 1 / S, or from a proposal and weigh P / Q
    (`exact_importance_weights`); up to the burn-in's bias where they are states of
    `independent_chain`. The noise falls as 1 / sqrt(S). The value is no likelihood, and may be
    below 0.

    Args:
        query_embeddings: [B, D], float.
        positive_embeddings: [B, D]; row b is the candidate that query b chose. Or [B, T, D].
        sampled_embeddings: [S, D], shared by all queries of the batch. Or [B, S, D].
        temperature: Divides the scores; above 0. A scalar tensor if it is learned.
        sampled_weights: [B, S]; no gradient flows into them, and they are not normalised. None:
            each 1 over the number of sampled candidates that are left in the row.
        positive_rows: [B] or [B, T], int64. Neither it nor the next enters the loss, as hits stay;
            they are taken so that losses over a sample can be called alike.
        sampled_rows: [S] or [B, S], int64; repeats are separate draws.
        positive_biases: [B] or [B, T]; part of the score. None: no bias.
        sampled_biases: [S] or [B, S], likewise.
        own_columns: [B], int64; a column that leaves its row. None: no such columns.
        sampled_mask: [B, S], bool; True is considered. None: all are.
        positive_weights: As `positive_rows`; target probabilities. 0 drops a positive, as padding
            needs. None: 1 / T each.

    Returns:
        [B], float32 or wider, in nats; not reduced. 0, with gradient 0, where no sampled candidate
        is left.

    Raises:
        ShapeError: Two arguments disagree in B, T, S or D.
        ArgumentError: `temperature` is not above 0.

    Source:
        "Quick training of probabilistic neural nets by importance sampling", AISTATS 2003.
    """
    with torch.autocast(query_embeddings.device.type, enabled=False):
        logits = compute_sample_logits(
            query_embeddings,
            positive_embeddings,
            sampled_embeddings,
            positive_rows=placeholder_rows(
                positive_rows, "positive_embeddings", positive_embeddings, query_embeddings
            ),
            sampled_rows=placeholder_rows(
                sampled_rows, "sampled_embeddings", sampled_embeddings, query_embeddings
            ),
            positive_log_q=None,
            sampled_log_q=None,
            temperature=temperature,
            positive_biases=positive_biases,
            sampled_biases=sampled_biases,
            own_columns=own_columns,
            sampled_mask=sampled_mask,
            positive_weights=positive_weights,
            remove_accidental_hits=False,
        )
        means = _weigh(logits, sampled_weights)  # [B]
        return subtract_positives(means, logits.positive_logits, positive_weights)


def _weigh(logits: SampleLogits, sampled_weights: Tensor | None) -> Tensor:
    """Compute the weighted sum of the sampled logits: [B]; -inf where none is left."""
    shape = (len(logits.queries), logits.num_sampled)
    removed = logits.removed.find()  # [B, S]
    if removed is None:
        removed = torch.zeros(shape, dtype=torch.bool, device=logits.queries.device)
    if sampled_weights is None:
        left = removed.logical_not().to(logits.queries.dtype)
        weights = left / left.sum(dim=1, keepdim=True).clamp(min=1)
    else:
        check_shape("sampled_weights", sampled_weights, *shape)
        weights = sampled_weights.detach().to(logits.queries.dtype).masked_fill(removed, 0)
    # The mean candidate first: its score is the mean score, and [B, S] scores are never computed.
    if logits.own is None:
        pooled = weights @ logits.shared  # [B, D]
    elif isinstance(logits.own, Tensor):
        pooled = torch.bmm(weights[:, None], logits.own).squeeze(1)
    else:
        pooled = logits.own.sum(weights)
    means = (logits.queries * pooled).sum(dim=1)
    if logits.offsets is not None:
        means = means + (weights * logits.offsets).sum(dim=1)
    return means.masked_fill(removed.all(dim=1), float("-inf"))
