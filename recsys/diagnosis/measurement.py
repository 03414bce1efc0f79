"""What one estimator came to at one sample size, with intervals."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recsys.diagnosis.batch_errors import BatchError
from recsys.diagnosis.row_errors import GRADIENTS, RowErrors
from recsys.evaluation import Estimate, Resampling

_CLEARLY = 2.0  # times the noise band
_ROUNDING = 1e-5  # of scores and gradients in float32


@dataclass(frozen=True)
class GradientError:
    """Bias and noise of a gradient, as shares of the full softmax's norm.

    Attributes:
        bias: ``||mean estimate - full|| / ||full||``, over all rows.
        noise: ``root of the mean squared ||estimate - full|| / ||full||``: of one draw, bias
            included.
        noise_band: ``noise / sqrt(draws)``: what `bias` reads where there is none.
    """

    bias: Estimate
    noise: Estimate
    noise_band: float

    @property
    def is_bias_clear(self) -> bool:
        """Tell whether the bias is more than noise leaves in a mean of so many draws.

        And more than rounding leaves of an exact estimate, whose noise is rounding too.
        """
        return self.bias.value > max(_CLEARLY * self.noise_band, _ROUNDING)

    def to_json(self) -> dict[str, Any]:
        """Give plain values."""
        return {
            "bias": plain_estimate(self.bias),
            "noise": plain_estimate(self.noise),
            "noise_band": self.noise_band,
            "bias_is_above_noise": self.is_bias_clear,
        }


@dataclass(frozen=True)
class StepError:
    """Error and time of one training step at the batch size.

    Attributes:
        error: ``||estimate - full|| / ||full||`` of the gradient of all tower outputs, root mean
            square over the batches; bias and noise together.
        query_error: Likewise of the user vectors alone.
        item_error: Likewise of the item vectors alone.
        cosine: Between estimate and full gradient, mean over the batches.
        draw_seconds: Median, to draw.
        seconds: Median, to draw and for the loss forward and backward; without the towers.
    """

    error: Estimate
    query_error: Estimate
    item_error: Estimate
    cosine: Estimate
    draw_seconds: float
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Give plain values."""
        estimates = {
            "error": self.error,
            "query_vectors_error": self.query_error,
            "item_vectors_error": self.item_error,
            "cosine": self.cosine,
        }
        plain = {name: plain_estimate(one) for name, one in estimates.items()}
        return plain | {"draw_seconds": self.draw_seconds, "seconds": self.seconds}


@dataclass(frozen=True)
class Measurement:
    """One estimator at one sample size.

    Attributes:
        estimator: Its name.
        sample_size: As it is set.
        candidates: Mean number that a row had.
        gradients: By `GRADIENTS`.
        loss_bias: Mean of (loss - full loss), nats; None where the loss is a surrogate.
        loss_noise: Root mean square of the same.
        hits: Share of a row's candidates that are its positive.
        effective_sample_size: Mean over rows; None where it has no meaning.
        facts: What else the draws told, such as the acceptance rate.
        step: At the batch size; None where training has no such step.
    """

    estimator: str
    sample_size: int
    candidates: float
    gradients: Mapping[str, GradientError]
    loss_bias: Estimate | None
    loss_noise: Estimate | None
    hits: float
    effective_sample_size: float | None
    facts: Mapping[str, float]
    step: StepError | None

    def to_json(self) -> dict[str, Any]:
        """Give plain values."""
        return {
            "estimator": self.estimator,
            "sample_size": self.sample_size,
            "candidates": self.candidates,
            "gradients": {name: one.to_json() for name, one in self.gradients.items()},
            "loss_bias_nats": plain_estimate(self.loss_bias),
            "loss_noise_nats": plain_estimate(self.loss_noise),
            "accidental_hits": self.hits,
            "effective_sample_size": self.effective_sample_size,
            **self.facts,
            "step": None if self.step is None else self.step.to_json(),
        }


def plain_estimate(estimate: Estimate | None) -> dict[str, float | None] | None:
    """Give value and ends of an estimate; None stays."""
    return None if estimate is None else vars(estimate)


def summarize(
    estimator: str,
    size: int,
    rows: RowErrors,
    steps: Sequence[BatchError],
    resampling: Resampling,
    *,
    has_likelihood: bool,
) -> Measurement:
    """Turn sums over draws into numbers with intervals over rows and over batches.

    Args:
        estimator: Its name.
        size: The sample size as it is set.
        rows: What the rows came to.
        steps: One for each batch; none where training has no such step.
        resampling: How intervals are made.
        has_likelihood: Whether the loss is one.
    """
    differences = {"bias": rows.loss_differences, "squares": rows.loss_squares}
    losses = resampling.means(differences) if has_likelihood else {}
    sizes = rows.effective_sizes
    facts = dict(rows.facts)
    candidates = facts.pop("candidates")
    facts.pop("effective_sample_size", None)  # stands in `sizes`
    return Measurement(
        estimator=estimator,
        sample_size=size,
        candidates=candidates,
        gradients=_gradient_errors(rows, resampling),
        loss_bias=losses.get("bias"),
        loss_noise=_root(losses["squares"]) if losses else None,
        hits=float(rows.hits.mean()),
        effective_sample_size=None if np.isnan(sizes).any() else float(sizes.mean()),
        facts=facts,
        step=_step_error(steps, resampling) if steps else None,
    )


def _gradient_errors(rows: RowErrors, resampling: Resampling) -> dict[str, GradientError]:
    names = [(what, name) for what in ("bias", "noise") for name in GRADIENTS]
    above = np.concatenate([rows.bias_squares, rows.error_squares], axis=1)  # [N, 6]
    below = np.concatenate([rows.full_squares, rows.full_squares], axis=1)
    ratios = resampling.ratios(names, above, below)
    return {
        name: GradientError(
            bias=_root(ratios["bias", name]),
            noise=_root(ratios["noise", name]),
            noise_band=math.sqrt(ratios["noise", name].value / rows.num_draws),
        )
        for name in GRADIENTS
    }


def _step_error(steps: Sequence[BatchError], resampling: Resampling) -> StepError:
    errors = np.array([[step.query_square, step.item_square] for step in steps])  # [batches, 2]
    full = np.array([[step.full_query_square, step.full_item_square] for step in steps])
    names = ["all", "queries", "items"]
    ratios = resampling.ratios(names, _with_sum(errors), _with_sum(full))
    cosines = np.array([step.cosine for step in steps])
    return StepError(
        error=_root(ratios["all"]),
        query_error=_root(ratios["queries"]),
        item_error=_root(ratios["items"]),
        cosine=resampling.means({"cosine": cosines})["cosine"],
        draw_seconds=statistics.median(step.draw_seconds for step in steps),
        seconds=statistics.median(step.seconds for step in steps),
    )


def _with_sum(squares: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
    """Put the sum of the columns in front of them."""
    return np.concatenate([squares.sum(axis=1, keepdims=True), squares], axis=1)


def _root(estimate: Estimate) -> Estimate:
    """Take the root of a mean square and of its interval's ends."""
    ends = [None if end is None else math.sqrt(end) for end in (estimate.low, estimate.high)]
    return Estimate(math.sqrt(estimate.value), *ends)
