"""The losses over a sample, as functions of one set of terms.

`product_dtype`, torch.bfloat16, rounds the factors of the matrix products of those that have some.

Dimensions: B queries, S sampled candidates, E output width of the towers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from recsys import losses


@dataclass(frozen=True, kw_only=True)
class SampledTerms:
    """What a step gives to a loss over a sample.

    Attributes:
        query_embeddings: [B, E].
        positive_embeddings: [B, E].
        sampled_embeddings: [S, E], or the pair of the shared and of the other columns.
        positive_rows: [B].
        sampled_rows: [S] or [B, S].
        positive_log_q: [B].
        sampled_log_q: As `sampled_rows`.
        num_draws: Expected size of the sample.
        temperature: Divides the scores.
        own_columns: [B] or None.
        sampled_mask: [B, S], True is considered; or None.
        drawn_mask: [B, S], True was drawn for the query, False stands in the sample by
            construction; or None, where only the own columns do.
        loss_weights: [B], what the losses are weighed by; or None, where all count alike.
    """

    query_embeddings: Tensor
    positive_embeddings: Tensor
    sampled_embeddings: losses.SampledEmbeddings
    positive_rows: Tensor
    sampled_rows: Tensor
    positive_log_q: Tensor
    sampled_log_q: Tensor
    num_draws: float
    temperature: float | Tensor
    own_columns: Tensor | None
    sampled_mask: Tensor | None
    drawn_mask: Tensor | None
    loss_weights: Tensor | None


SampledLoss = Callable[[SampledTerms], Tensor]


def _vectors(terms: SampledTerms) -> dict[str, Any]:
    """Give what every loss over a sample takes."""
    return {
        "query_embeddings": terms.query_embeddings,
        "positive_embeddings": terms.positive_embeddings,
        "sampled_embeddings": terms.sampled_embeddings,
        "positive_rows": terms.positive_rows,
        "sampled_rows": terms.sampled_rows,
        "temperature": terms.temperature,
        "own_columns": terms.own_columns,
        "sampled_mask": terms.sampled_mask,
    }


def _arguments(terms: SampledTerms, product_dtype: torch.dtype | None) -> dict[str, Any]:
    """Give what every loss with a sum over the sample takes."""
    return _vectors(terms) | {"loss_weights": terms.loss_weights, "product_dtype": product_dtype}


def _corrected(terms: SampledTerms, product_dtype: torch.dtype | None) -> dict[str, Any]:
    """Give the same with log Q."""
    return _arguments(terms, product_dtype) | {
        "positive_log_q": terms.positive_log_q,
        "sampled_log_q": terms.sampled_log_q,
    }


def standard_softmax(
    terms: SampledTerms,
    *,
    remove_accidental_hits: bool,
    product_dtype: torch.dtype | None = None,
) -> Tensor:
    """Sampled softmax with log Q on every column: [B]."""
    return losses.sampled_softmax_loss(
        **_corrected(terms, product_dtype), remove_accidental_hits=remove_accidental_hits
    )


def uncorrected_softmax(
    terms: SampledTerms,
    *,
    remove_accidental_hits: bool,
    product_dtype: torch.dtype | None = None,
) -> Tensor:
    """Sampled softmax without log Q: [B]."""
    return losses.sampled_softmax_loss(
        **_arguments(terms, product_dtype),
        positive_log_q=None,
        sampled_log_q=None,
        remove_accidental_hits=remove_accidental_hits,
    )


def refined_softmax(terms: SampledTerms, *, product_dtype: torch.dtype | None = None) -> Tensor:
    """Sampled softmax with the refined correction: [B]."""
    return losses.refined_softmax_loss(
        **_corrected(terms, product_dtype), num_draws=terms.num_draws
    )


def negative_sampling(terms: SampledTerms, *, product_dtype: torch.dtype | None = None) -> Tensor:
    """One positive and S sampled negatives as binary classifications: [B]."""
    return losses.negative_sampling_loss(**_arguments(terms, product_dtype))


def noise_contrastive(terms: SampledTerms, *, product_dtype: torch.dtype | None = None) -> Tensor:
    """Noise-contrastive estimation: [B]."""
    return losses.noise_contrastive_loss(**_corrected(terms, product_dtype))


def sampled_logistic(terms: SampledTerms, *, product_dtype: torch.dtype | None = None) -> Tensor:
    """Sampled logistic regression: [B]."""
    return losses.sampled_logistic_loss(**_corrected(terms, product_dtype))


def bpr(terms: SampledTerms) -> Tensor:
    """Pairwise ranking of the positive over the sampled: [B]."""
    return losses.bpr_loss(**_vectors(terms))
