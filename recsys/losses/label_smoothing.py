"""What label smoothing adds to a softmax loss: a part of the target goes to the whole catalogue.

Dimensions: B queries, P rows of losses, S sampled candidates, C candidates in the catalogue, D
embedding width.
"""

import torch
from torch import Tensor

from recsys.foundations import ArgumentError, check_shape
from recsys.losses import softmax_core as core
from recsys.losses.catalogue_logits import CatalogueLogits
from recsys.losses.sample_logits import SampledEmbeddings


def label_smoothing_term(logits: CatalogueLogits, smoothing: float) -> Tensor:
    """Compute ``smoothing * (positive's logit - mean logit of the catalogue)``.

    Added to the full softmax's loss, it makes the target ``1 - smoothing`` at the positive and
    ``smoothing / C`` everywhere. It costs next to nothing: a mean of logits is the logit of the
    mean vector.

    Args:
        logits: Of one positive a row.
        smoothing: In [0, 1).

    Returns:
        [P], float32 or wider, in nats; it may be below 0.

    Source:
        "Rethinking the Inception architecture for computer vision", CVPR 2016.
    """
    means = logits.queries @ logits.catalogue.mean(dim=0)  # [B]
    if logits.offsets is not None:
        means = means + logits.offsets.mean()
    return smoothing * (logits.positive_logits.squeeze(1) - logits.by_row(means))


def sampled_label_smoothing_term(
    query_embeddings: Tensor,
    positive_embeddings: Tensor,
    sampled_embeddings: SampledEmbeddings,
    *,
    sampled_log_q: Tensor,
    num_candidates: int,
    temperature: float | Tensor,
    smoothing: float,
    own_columns: Tensor | None = None,
    drawn_mask: Tensor | None = None,
) -> Tensor:
    """Estimate what `label_smoothing` adds to `full_softmax_loss`, from a sample of the catalogue.

    The mean logit is ``sum over the sampled of logit / Q``, divided by C: without bias, as Q is how
    often a candidate is expected. So accidental hits stay in it, and what stands in the sample by
    construction leaves: in-batch, the query's own positive. (Q then counts one draw of B too many,
    and the estimate is too small by up to 1 / B.) Rare candidates weigh most: the flatter the
    sampler, the less noise.

    Args:
        query_embeddings: [B, D], float.
        positive_embeddings: [B, D].
        sampled_embeddings: [S, D], shared by all queries of the batch; or [B, S, D]; or a pair, of
            the first columns, [S1, D], and of the others, [B, S - S1, D] or `PlacedEmbeddings`.
        sampled_log_q: [S] or [B, S], natural log of the expected count in the sample.
        num_candidates: C.
        temperature: Divides the scores; above 0. A scalar tensor if it is learned.
        smoothing: In [0, 1).
        own_columns: [B], int64; a column that was not drawn for the query. None: no such columns.
        drawn_mask: [B, S], bool; False was not drawn for the query either. None: all else was.

    Returns:
        [B], float32 or wider, in nats.

    Raises:
        ShapeError: Two arguments disagree in B, S or D.
        ArgumentError: `smoothing` is out of range, or `temperature` is not above 0.

    Source:
        "Rethinking the Inception architecture for computer vision", CVPR 2016. Differs: the mean
        over the catalogue is estimated by importance sampling.
    """
    check_smoothing("smoothing", smoothing)
    check_shape("query_embeddings", query_embeddings, None, None)
    batch, width = query_embeddings.shape
    check_shape("positive_embeddings", positive_embeddings, batch, width)
    core.check_optional("own_columns", own_columns, batch)
    core.check_mask("drawn_mask", drawn_mask, batch, sampled_log_q.shape[-1])
    with torch.autocast(query_embeddings.device.type, enabled=False):
        queries = core.scale_queries(query_embeddings, temperature)
        positives = core.score_positives(queries, positive_embeddings)
        weights = sampled_log_q.neg().exp().to(queries.dtype) / num_candidates
        if drawn_mask is not None:
            weights = weights * drawn_mask  # [B, S]
        means = _mean_vectors(sampled_embeddings, weights, own_columns)  # [D] or [B, D]
        return smoothing * (positives - (queries * means).sum(dim=1))


def _mean_vectors(
    embeddings: SampledEmbeddings, weights: Tensor, own_columns: Tensor | None
) -> Tensor:
    """Sum the vectors by weight, without the own columns: [D] for all queries, or [B, D]."""
    if isinstance(embeddings, Tensor) and embeddings.dim() == 2 and weights.dim() == 1:
        vectors = core.widen(embeddings)
        means = weights @ vectors
        if own_columns is None:
            return means
        return means - vectors.index_select(0, own_columns) * weights[own_columns, None]
    if own_columns is not None:
        weights = weights.expand(len(own_columns), -1)
        weights = weights.scatter(1, own_columns[:, None], 0.0)
    if isinstance(embeddings, Tensor):
        vectors = core.widen(embeddings)
        return weights @ vectors if vectors.dim() == 2 else _sum_own(weights, vectors)
    shared, own = embeddings
    of_shared = weights[..., : len(shared)] @ core.widen(shared)
    rest = weights[..., len(shared) :]
    if isinstance(own, Tensor):
        return of_shared + _sum_own(rest, core.widen(own))
    return of_shared + own.widened().sum(rest.expand(own.places.shape))


def _sum_own(weights: Tensor, vectors: Tensor) -> Tensor:
    """Sum [B, S, D] by [B, S], or [S], to [B, D]."""
    return (weights[..., None, :] @ vectors).squeeze(-2)


def check_smoothing(name: str, smoothing: float) -> None:
    """Check that a part of the target is one.

    Raises:
        ArgumentError: It is below 0, or not below 1.
    """
    if not 0 <= smoothing < 1:
        raise ArgumentError(f"`{name}` must be at least 0 and below 1, got {smoothing}.")
