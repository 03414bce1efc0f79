"""Sampled softmax with the refined logQ correction: the positive is known, not sampled.

Dimensions: B queries in the batch, T positives a query, S sampled candidates, D embedding width.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from recsys.foundations import ArgumentError, check_positive
from recsys.losses.block_passes import Weigh
from recsys.losses.sample_logits import (
    SampledEmbeddings,
    SampleLogits,
    compute_sample_logits,
)
from recsys.losses.softmax_core import by_column, check_optional

_CERTAIN = 1 + 1e-5  # as far above 1 as float32 may round the positives' chances


@dataclass(frozen=True)
class RefinedTerms:
    """What the refined loss is the product of; only `loss` has a gradient.

    Attributes:
        loss: [B] or [B, T], nats; ``log sum over negatives of exp(logit) / Q' - positive logit``.
            It can be below 0: it is not the log of a probability.
        weight: As `loss`; 1 - the estimated probability of the positive.
        positive_probability: As `loss`, 0 to 1, estimated from the sample.
        num_negatives: [B], int64; sampled candidates that are left.
    """

    loss: Tensor
    weight: Tensor
    positive_probability: Tensor
    num_negatives: Tensor


def refined_softmax_loss(
    query_embeddings: Tensor,
    positive_embeddings: Tensor,
    sampled_embeddings: SampledEmbeddings,
    *,
    positive_rows: Tensor,
    sampled_rows: Tensor,
    positive_log_q: Tensor,
    sampled_log_q: Tensor,
    num_draws: float,
    temperature: float | Tensor,
    positive_biases: Tensor | None = None,
    sampled_biases: Tensor | None = None,
    own_columns: Tensor | None = None,
    sampled_mask: Tensor | None = None,
    positive_weights: Tensor | None = None,
    loss_weights: Tensor | None = None,
    product_dtype: torch.dtype | None = None,
) -> Tensor:
    """Compute the weighted loss whose gradient estimates the full softmax's, positive by positive.

    The sum over t of ``weight * loss`` of `refined_softmax_terms`, whose arguments these are. Its
    value is no cross-entropy and can be below 0; its gradient is that of the full softmax, up to
    a bias that falls as 1 / S.

    Returns:
        [B], float32 or wider; not reduced. 0, with gradient 0, where no negative is left.

    Raises:
        ShapeError: Two arguments disagree in B, T, S or D.
        ArgumentError: `temperature` or `num_draws` is not above 0.

    Source:
        "Correcting the LogQ correction: revisiting sampled softmax for large-scale retrieval",
        RecSys 2025. Differs: as `refined_softmax_terms`.
    """
    terms = refined_softmax_terms(
        query_embeddings,
        positive_embeddings,
        sampled_embeddings,
        positive_rows=positive_rows,
        sampled_rows=sampled_rows,
        positive_log_q=positive_log_q,
        sampled_log_q=sampled_log_q,
        num_draws=num_draws,
        temperature=temperature,
        positive_biases=positive_biases,
        sampled_biases=sampled_biases,
        own_columns=own_columns,
        sampled_mask=sampled_mask,
        positive_weights=positive_weights,
        loss_weights=loss_weights,
        product_dtype=product_dtype,
    )
    weighted = terms.weight * terms.loss
    return weighted if weighted.dim() == 1 else weighted.sum(dim=1)


def refined_softmax_terms(
    query_embeddings: Tensor,
    positive_embeddings: Tensor,
    sampled_embeddings: SampledEmbeddings,
    *,
    positive_rows: Tensor,
    sampled_rows: Tensor,
    positive_log_q: Tensor,
    sampled_log_q: Tensor,
    num_draws: float,
    temperature: float | Tensor,
    positive_biases: Tensor | None = None,
    sampled_biases: Tensor | None = None,
    own_columns: Tensor | None = None,
    sampled_mask: Tensor | None = None,
    positive_weights: Tensor | None = None,
    loss_weights: Tensor | None = None,
    product_dtype: torch.dtype | None = None,
) -> RefinedTerms:
    """Compute loss, weight and probability of each positive.

    The positive's part of the full softmax is known, so it is neither corrected nor in the sum over
    the negatives; these are draws from ``Q' = Q / (1 - Q(positive))``, Q the probability of one
    draw. With ``mean`` the average of ``exp(logit) / Q'`` over the negatives that are left:

        loss = log(sum over negatives of exp(logit) / Q') - positive logit
        probability = exp(positive logit) / (exp(positive logit) + mean)
        weight = 1 - probability, without a gradient

    With several positives all of them leave the sample (Q' = Q / (1 - sum of Q over them, which
    must be different ones) and stand in the probability's denominator, and positive t has the
    weight ``target_t - probability_t * sum of targets``, again as in the full softmax's gradient.

    Args:
        query_embeddings: [B, D], float.
        positive_embeddings: [B, D] or [B, T, D]; the candidates that query b chose.
        sampled_embeddings: [S, D], shared by all queries of the batch; or [B, S, D]; or a pair, of
            the first columns, [S1, D], and of the others, [B, S - S1, D] or `PlacedEmbeddings`.
        positive_rows: [B] or [B, T], int64, in the catalogue.
        sampled_rows: [S] or [B, S], int64, in the catalogue; repeats are allowed and stay.
        positive_log_q: As `positive_rows`, natural log of the expected count in the sample.
        sampled_log_q: As `sampled_rows`, likewise; finite (the sampler checks it).
        num_draws: The sample's expected size, above 0: ``exp(log_q) / num_draws`` sums to 1 over
            the catalogue. Where it makes the positives' chances sum to more, the loss is NaN.
        temperature: Divides the scores, not ``log_q``; above 0. A scalar tensor if it is learned.
        positive_biases: As `positive_rows`; part of the score. None: no bias.
        sampled_biases: As `sampled_rows`, likewise.
        own_columns: [B], int64; the column that holds the query's own positive by construction.
        sampled_mask: [B, S], bool; True is considered. None: all are. What is masked leaves the
            number of negatives, but Q' knows nothing of it.
        positive_weights: As `positive_rows`; target probabilities, at least 0. Of weight 0 is
            padding. None: 1 / T each.
        loss_weights: [B]; the factors, up to a common one, by which the losses will be weighed.
            They change no result: with them the gradients can be computed along with the losses.
            None: 1 each.
        product_dtype: torch.bfloat16 rounds the factors of the matrix products to it, where the
            sample is shared. None: none.

    Returns:
        The terms, float32 or wider. Where no negative is left, or Q leaves none (the positives'
        chances sum to 1), loss and weight are 0, with gradient 0: that is their limit.

    Raises:
        ShapeError: Two arguments disagree in B, T, S or D.
        ArgumentError: `temperature` or `num_draws` is not above 0.

    Source:
        "Correcting the LogQ correction: revisiting sampled softmax for large-scale retrieval",
        RecSys 2025. Differs: several positives; weight 0 where no negative is left.
    """
    check_positive("num_draws", num_draws)
    if num_draws == math.inf:
        raise ArgumentError("`num_draws` must be finite, got inf.")
    with torch.autocast(query_embeddings.device.type, enabled=False):
        logits = compute_sample_logits(
            query_embeddings,
            positive_embeddings,
            sampled_embeddings,
            positive_rows=positive_rows,
            sampled_rows=sampled_rows,
            positive_log_q=None,
            sampled_log_q=sampled_log_q,
            temperature=temperature,
            positive_biases=positive_biases,
            sampled_biases=sampled_biases,
            own_columns=own_columns,
            sampled_mask=sampled_mask,
            positive_weights=positive_weights,
            remove_accidental_hits=True,
            loss_weights=loss_weights,
            product_dtype=product_dtype,
        )
        check_optional("positive_log_q", positive_log_q, *positive_rows.shape)
        return _combine(logits, positive_log_q - math.log(num_draws), math.log(num_draws))


def _combine(
    logits: SampleLogits, positive_log_probability: Tensor, log_num_draws: float
) -> RefinedTerms:
    shape = logits.positive_logits.shape
    positives = _Positives.of(logits, positive_log_probability, log_num_draws)
    log_sums = logits.log_sum(positives.expect(logits.loss_weights))  # [B]
    log_negatives = positives.correct(slice(None), log_sums)  # [B, 1]
    empty = positives.padding | positives.empty
    loss = (log_negatives - positives.logits).masked_fill(empty, 0)
    with torch.no_grad():
        probability, weight = positives.weigh(slice(None), log_negatives)
    return RefinedTerms(
        loss.reshape(shape),
        weight.reshape(shape),
        probability.reshape(shape),
        positives.num_negatives,
    )


@dataclass(frozen=True)
class _Positives:
    """What the terms are made of, but for the sums over the negatives.

    Attributes:
        logits: [B, T].
        targets: [B, T]; 0 is padding.
        padding: [B, T], bool.
        empty: [B, 1], bool; where no negative is left, or Q leaves none.
        correction: [B]; log of ``(1 - sum of Q over the positives) * num_draws``.
        num_negatives: [B], int64.
    """

    logits: Tensor
    targets: Tensor
    padding: Tensor
    empty: Tensor
    correction: Tensor
    num_negatives: Tensor

    @classmethod
    def of(
        cls, logits: SampleLogits, positive_log_probability: Tensor, log_num_draws: float
    ) -> "_Positives":
        positive_logits = by_column(logits.positive_logits)
        if logits.positive_weights is None:
            targets = torch.full_like(positive_logits, 1 / positive_logits.shape[1])
        else:
            targets = logits.positive_weights.reshape(positive_logits.shape)
        padding = targets == 0
        num_negatives = logits.count_left()
        drawn = positive_log_probability.reshape(padding.shape).exp().masked_fill(padding, 0)
        share = drawn.sum(dim=1)  # [B]; 1, but for rounding, where no draw is left for others
        certain = (share >= 1) & (share < _CERTAIN)
        rest = -share.masked_fill(certain, 0)  # a share further above 1 is no share, and gives NaN
        return cls(
            logits=positive_logits,
            targets=targets,
            padding=padding,
            empty=certain[:, None] | (num_negatives[:, None] == 0),
            correction=(torch.log1p(rest) + log_num_draws).to(positive_logits.dtype),
            num_negatives=num_negatives,
        )

    def correct(self, rows: slice, log_sums: Tensor) -> Tensor:
        """Give the log of the sum over the negatives of ``exp(logit) / Q'``: [b, 1]; 0 if empty."""
        # The sampled logits hold - log_q.
        return (log_sums + self.correction[rows])[:, None].masked_fill(self.empty[rows], 0)

    def weigh(self, rows: slice, log_negatives: Tensor) -> tuple[Tensor, Tensor]:
        """Give each positive's probability and its weight: [b, T]."""
        logits, padding, empty = self.logits[rows], self.padding[rows], self.empty[rows]
        log_mean = log_negatives - self.num_negatives[rows, None].to(logits.dtype).log()
        probability, complement = _shares(
            logits.masked_fill(padding, float("-inf")), log_mean.masked_fill(empty, float("-inf"))
        )
        # target - probability * sum of targets, without a difference of what is nearly equal.
        targets = self.targets[rows]
        others = targets.sum(dim=1, keepdim=True) - targets
        weight = complement * targets - probability * others
        return probability, weight.masked_fill(padding | empty, 0)

    def expect(self, loss_weights: Tensor | None) -> Weigh:
        """Expect the gradient that sums over the negatives get: that of the weighted loss."""

        def weigh(rows: slice, log_sums: Tensor) -> Tensor:
            _, weights = self.weigh(rows, self.correct(rows, log_sums))
            total = weights.sum(dim=1)
            return total if loss_weights is None else total * loss_weights[rows]

        return weigh


def _shares(positive_logits: Tensor, log_mean: Tensor) -> tuple[Tensor, Tensor]:
    """Give each positive's share in the softmax over [B, T] and [B, 1], and 1 less it: [B, T]."""
    logits = torch.cat([positive_logits, log_mean], dim=1)  # [B, T + 1]
    nothing = (logits == float("-inf")).all(dim=1, keepdim=True)  # padding alone, and no negative
    shares = logits.masked_fill(nothing, 0).softmax(dim=1).masked_fill(nothing, 0)
    of_others = 1 - torch.eye(logits.shape[1], dtype=shares.dtype, device=shares.device)
    return shares[:, :-1], (shares @ of_others)[:, :-1]
