"""Self-normalised importance sampling of the softmax gradient.

Dimensions: B queries in the batch, T positives a query, S sampled candidates, D embedding width.
"""

import torch
from torch import Tensor

from recsys.foundations import check_floats, check_shape
from recsys.losses import softmax_core as core
from recsys.losses.expected_gradients import expect_of_difference
from recsys.losses.gathered_scores import gathered_scores
from recsys.losses.placeholder_rows import placeholder_rows
from recsys.losses.sample_logits import compute_sample_logits
from recsys.losses.subtract_positives import subtract_positives


def importance_sampling_loss(
    query_embeddings: Tensor,
    positive_embeddings: Tensor,
    sampled_embeddings: Tensor,
    *,
    sampled_log_q: Tensor,
    temperature: float | Tensor,
    positive_rows: Tensor | None = None,
    sampled_rows: Tensor | None = None,
    positive_log_q: Tensor | None = None,
    positive_biases: Tensor | None = None,
    sampled_biases: Tensor | None = None,
    own_columns: Tensor | None = None,
    sampled_mask: Tensor | None = None,
    positive_weights: Tensor | None = None,
    loss_weights: Tensor | None = None,
) -> Tensor:
    """Estimate the full softmax's loss: ``log Z_hat - score of the positive / temperature``.

    ``Z_hat = sum over the sample of exp(score / temperature) / Q`` is an unbiased estimate of the
    denominator (see `partition_estimate`). The gradient is ``sum over j of w_j d(score_j)``, with
    the weights ``exp(score_j) / Q_j`` divided by their sum (`importance_weights`), less that of the
    positive, exactly: the positive stands outside the sample and gets no correction. So a sampled
    candidate that is the positive is a draw like others, and stays.

    The gradient is the full softmax's where every candidate is sampled once under equal Q, and on
    average where Q is the softmax itself. Elsewhere its bias falls as 1 / S and its noise as
    1 / sqrt(S), both times a factor that grows as Q and the softmax part; `effective_sample_size`
    measures it. Below a few effective draws training may diverge: a positive that is seldom drawn
    is pushed up and never down.

    Args:
        query_embeddings: [B, D], float.
        positive_embeddings: [B, D]; row b is the candidate that query b chose. Or [B, T, D].
        sampled_embeddings: [S, D], shared by all queries of the batch. Or [B, S, D].
        sampled_log_q: [S] or [B, S], natural log of the expected count in the sample; finite (the
            sampler checks it). A constant added to it is taken from the loss and leaves the
            gradient as it is.
        temperature: Divides the scores, not ``log_q``; above 0. A scalar tensor if it is learned.
        positive_rows: [B] or [B, T], int64. Neither it nor the next two enter the loss, as hits
            stay and the positive's term is exact; they are taken so that losses over a sample can
            be called alike.
        sampled_rows: [S] or [B, S], int64; repeats are separate draws.
        positive_log_q: [B] or [B, T].
        positive_biases: [B] or [B, T]; part of the score. None: no bias.
        sampled_biases: [S] or [B, S], likewise.
        own_columns: [B], int64; the column that holds the query's own positive by construction
            (in-batch draws) and leaves its row. None: no such columns.
        sampled_mask: [B, S], bool; True is considered. None: all are.
        positive_weights: As `positive_rows`; target probabilities. 0 drops a positive, as padding
            needs. None: 1 / T each.
        loss_weights: [B]; the factors, up to a common one, by which the losses will be weighed.
            They change no result: with them the gradients can be computed along with the losses.
            None: 1 each.

    Returns:
        [B], float32 or wider, in nats; not reduced. 0, with gradient 0, where no sampled candidate
        is left.

    Raises:
        ShapeError: Two arguments disagree in B, T, S or D.
        ArgumentError: `temperature` is not above 0.

    Source:
        "Quick training of probabilistic neural nets by importance sampling", AISTATS 2003;
        "Adaptive importance sampling to accelerate training of a neural probabilistic language
        model", IEEE TNN 2008. Differs: the estimate is a loss, and its gradient the paper's.
    """
    core.check_optional("positive_log_q", positive_log_q, *positive_embeddings.shape[:-1])
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
            sampled_log_q=sampled_log_q,
            temperature=temperature,
            positive_biases=positive_biases,
            sampled_biases=sampled_biases,
            own_columns=own_columns,
            sampled_mask=sampled_mask,
            positive_weights=positive_weights,
            remove_accidental_hits=False,
            loss_weights=loss_weights,
        )
        positive_logits = logits.positive_logits
        expected = expect_of_difference(positive_logits, positive_weights, loss_weights)
        return subtract_positives(logits.log_sum(expected), positive_logits, positive_weights)


def importance_log_weights(
    query_embeddings: Tensor,
    candidate_embeddings: Tensor,
    *,
    log_q: Tensor,
    temperature: float | Tensor,
    places: Tensor | None = None,
) -> Tensor:
    """Compute the log of ``exp(score / temperature) / Q`` of each draw.

    Their logsumexp, less the positive's ``score / temperature``, is `importance_sampling_loss`,
    with the same gradient. This way their spread can be looked at without scoring twice, and a
    candidate that was drawn m times can be scored once, with log m added to its log weight.

    Args:
        query_embeddings: [B, D], float.
        candidate_embeddings: [K, D].
        log_q: [K], or as `places`; natural log of the expected count in the sample; finite.
        temperature: Divides the scores; above 0. A scalar tensor if it is learned.
        places: [B, S], int64, in [0, K): which candidates each query's own draws are. None: all
            K, shared by the queries.

    Returns:
        [B, K] or [B, S], float32 or wider, nats.

    Raises:
        ShapeError: Two arguments disagree in B, K, S or D.
        ArgumentError: `temperature` is not above 0.
    """
    check_shape("query_embeddings", query_embeddings, None, None)
    batch, width = query_embeddings.shape
    check_shape("candidate_embeddings", candidate_embeddings, None, width)
    if places is not None:
        check_shape("places", places, batch, None)
    shape = candidate_embeddings.shape[:1] if places is None else places.shape
    check_shape("log_q", log_q, *shape)
    core.check_vectors(query_embeddings, candidate_embeddings=candidate_embeddings)
    with torch.autocast(query_embeddings.device.type, enabled=False):
        queries = core.scale_queries(query_embeddings, temperature)  # [B, D]
        candidates = core.widen(candidate_embeddings)
        offsets = -log_q.to(queries.dtype)
        if places is None:
            return torch.addmm(offsets, queries, candidates.T)
        return offsets + gathered_scores(queries, candidates, places)


def importance_weights(log_weights: Tensor) -> Tensor:
    """Normalise importance weights over each row's sample: the softmax of their logs.

    They are what `importance_sampling_loss` gives each draw's score as its gradient.

    Args:
        log_weights: [B, S] or [S], float; log of ``exp(score / temperature) / Q``. -inf: weight 0.

    Returns:
        As `log_weights`, float32 or wider; a row sums to 1, or to 0 where no weight is above 0.

    Source:
        "Quick training of probabilistic neural nets by importance sampling", AISTATS 2003.
    """
    check_floats("log_weights", log_weights)
    log_weights = core.widen(log_weights)
    none = (log_weights == float("-inf")).all(dim=-1, keepdim=True)
    return log_weights.masked_fill(none, 0).softmax(dim=-1).masked_fill(none, 0)
