"""An estimate of the softmax's denominator from a sample.

Dimensions: B queries, S sampled candidates.
"""

from dataclasses import dataclass

from torch import Tensor

from recsys.losses.effective_sample_size import WeightSums


@dataclass(frozen=True)
class PartitionEstimate:
    """The log of an unbiased estimate of Z, and how far to trust it.

    Attributes:
        log_z: [B], in nats; -inf where no weight is above 0.
        standard_error: [B]; of ``log_z``, which is that of Z divided by Z. NaN with one draw, inf
            where no weight is above 0: nothing is known.
    """

    log_z: Tensor
    standard_error: Tensor


def partition_estimate(log_weights: Tensor) -> PartitionEstimate:
    """Estimate ``Z = sum over the catalogue of exp(score / temperature)``.

    ``Z_hat = sum over the sample of exp(score / temperature) / Q``, with Q the expected count: a
    candidate is in the sum Q times on average, so the mean of Z_hat is Z however the sample was
    drawn, as long as no candidate has Q = 0. For S draws with replacement Q is S times the chance
    p of one draw, and Z_hat is the mean of ``exp(score / temperature) / p``. The log of Z_hat is
    too low on average, by half its squared standard error, as the log is concave.

    The standard error ``sqrt((S / ESS - 1) / (S - 1))`` is that of independent draws with
    replacement: there its square times Z_hat^2 is on average the variance of Z_hat. It needs no
    more than the effective sample size ESS. No gradient flows through either.

    Args:
        log_weights: [B, S] or [S], float; ``score / temperature - log_q``, with ``log_q`` the log
            of the expected count. -inf: a draw that adds nothing to Z.

    Returns:
        [B] each, or [] for one row; float32 or wider.

    Raises:
        ShapeError: `log_weights` is neither [B, S] nor [S].
        ArgumentError: It does not hold floating-point numbers.

    Source:
        "Quick training of probabilistic neural nets by importance sampling", AISTATS 2003.
        Differs: Q is an expected count, so that draws without repeats are covered; the standard
        error is stated.
    """
    sums = WeightSums.of(log_weights)
    num_samples = log_weights.shape[-1]
    spread = num_samples / sums.effective_sample_size() - 1  # squared weights' mean over mean^2
    # Rounding may leave equal weights a spread just below 0.
    error = (spread.clamp(min=0) / (num_samples - 1)).sqrt()
    error = error.masked_fill(sums.total == 0, float("inf"))
    return PartitionEstimate(sums.total.log() + sums.log_peak, error)
