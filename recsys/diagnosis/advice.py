"""One sentence: the cheapest estimator that is close enough at the batch size."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recsys.diagnosis.kind import Kind
from recsys.diagnosis.measurement import Measurement, StepError
from recsys.diagnosis.registry import KINDS


@dataclass(frozen=True)
class Advice:
    """The advice and what it rests on.

    Attributes:
        sentence: For a person.
        estimator: Name of the cheapest that is below the target; None: none is.
        sample_size: Its sample size, likewise.
    """

    sentence: str
    estimator: str | None
    sample_size: int | None

    def to_json(self) -> dict[str, Any]:
        """Give plain values."""
        return vars(self)


def advise(measurements: Sequence[Measurement], *, target: float, batch_size: int) -> Advice:
    """Name the cheapest estimator and sample size whose error is below the target.

    Cheap is what takes the least time a step: to draw, and for the loss forward and backward. What
    does not aim at the softmax is not advised, however small its error is here; nor is a reference
    that looks at the whole catalogue to draw.

    Args:
        measurements: Of any estimators.
        target: Largest relative error of the gradient of the tower outputs at the batch size.
        batch_size: B.
    """
    steps = [
        (one, one.step)
        for one in measurements
        if one.step is not None and _is_advisable(KINDS[one.estimator])
    ]
    good = [(one, step) for one, step in steps if step.error.value < target]
    at_batch = f"At a batch of {batch_size:,} rows"
    if not steps:
        return Advice(f"{at_batch} nothing that aims at the softmax was measured.", None, None)
    if not good:
        closest = min(steps, key=lambda pair: pair[1].error.value)
        return Advice(
            f"{at_batch} no estimator that was measured has an error below {target:g}: "
            f"the closest is {_said(*closest)}.",
            None,
            None,
        )
    best, step = min(good, key=lambda pair: pair[1].seconds)
    full = [step for one, step in steps if one.estimator == "full_softmax"]
    if best.estimator == "full_softmax":
        sentence = (
            f"{at_batch} the full softmax itself is the cheapest with an error below {target:g}: "
            f"{_milliseconds(step)} a step."
        )
    else:
        against = f"; the full softmax takes {_milliseconds(full[0])}" if full else ""
        sentence = (
            f"{at_batch} the cheapest estimator with an error below {target:g} is "
            f"{_said(best, step)}{against}."
        )
    return Advice(sentence, best.estimator, best.sample_size)


def _is_advisable(kind: Kind) -> bool:
    return kind.aim == "softmax" and not kind.visits_all


def _said(one: Measurement, step: StepError) -> str:
    label = KINDS[one.estimator].label
    size = "" if one.estimator == "full_softmax" else f" with a sample size of {one.sample_size:,}"
    return f"{label}{size} (error {step.error.value:.3f}, {_milliseconds(step)} a step)"


def _milliseconds(step: StepError) -> str:
    return f"{1000 * step.seconds:.1f} ms"
