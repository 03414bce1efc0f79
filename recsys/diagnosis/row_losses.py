"""The losses over a sample, each as a function of the same inputs and candidates: [b], in nats."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from recsys import losses
from recsys.diagnosis.candidates import Candidates, LossInputs

RowLoss = Callable[[LossInputs, Candidates], Tensor]


def _uncorrected(inputs: LossInputs, candidates: Candidates) -> dict[str, Any]:
    """Give the arguments of a loss over a sample without log Q."""
    return inputs.arguments() | {
        "positive_rows": inputs.positive_rows,
        "sampled_rows": candidates.rows,
        "own_columns": candidates.own_columns,
    }


def _corrected(inputs: LossInputs, candidates: Candidates) -> dict[str, Any]:
    """Give the same with log Q."""
    return _uncorrected(inputs, candidates) | {
        "positive_log_q": candidates.positive_log_q,
        "sampled_log_q": candidates.log_q,
    }


def standard(inputs: LossInputs, candidates: Candidates) -> Tensor:
    """Sampled softmax with log Q on every column."""
    return losses.sampled_softmax_loss(**_corrected(inputs, candidates))


def refined(inputs: LossInputs, candidates: Candidates) -> Tensor:
    """Sampled softmax with the refined correction."""
    return losses.refined_softmax_loss(
        **_corrected(inputs, candidates), num_draws=candidates.num_draws
    )


def without_log_q(inputs: LossInputs, candidates: Candidates) -> Tensor:
    """Sampled softmax without log Q."""
    return losses.sampled_softmax_loss(
        **_uncorrected(inputs, candidates), positive_log_q=None, sampled_log_q=None
    )


def importance(inputs: LossInputs, candidates: Candidates) -> Tensor:
    """Self-normalised importance sampling."""
    return losses.importance_sampling_loss(**_corrected(inputs, candidates))


def weighted(inputs: LossInputs, candidates: Candidates) -> Tensor:
    """Weighted scores of the candidates less the positive's: a surrogate with the gradient."""
    return losses.monte_carlo_loss(**inputs.arguments(), sampled_weights=candidates.weights)


def noise_contrastive(inputs: LossInputs, candidates: Candidates) -> Tensor:
    """Noise-contrastive estimation."""
    return losses.noise_contrastive_loss(**_corrected(inputs, candidates))


def sampled_logistic(inputs: LossInputs, candidates: Candidates) -> Tensor:
    """Sampled logistic regression."""
    return losses.sampled_logistic_loss(**_corrected(inputs, candidates))


def negative_sampling(inputs: LossInputs, candidates: Candidates) -> Tensor:
    """Negative sampling."""
    return losses.negative_sampling_loss(**_uncorrected(inputs, candidates))


def bpr(inputs: LossInputs, candidates: Candidates) -> Tensor:
    """Pairwise ranking."""
    return losses.bpr_loss(**_uncorrected(inputs, candidates))
