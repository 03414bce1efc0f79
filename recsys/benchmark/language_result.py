"""What the next-word experiment came to."""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recsys.benchmark.machine import describe_machine
from recsys.foundations import write_json

FORMAT = "recsys-language"
FORMAT_VERSION = 1
REFERENCE = "full_softmax"
CLOSE = 1.05  # perplexity that counts as equal, against the reference's last


@dataclass(frozen=True)
class EpochRecord:
    """One epoch of one estimator.

    Attributes:
        seconds: Of training alone: batches, forward, backward, update.
        examples: Words trained on; fewer than all where the loss ceased to be finite.
        loss: Mean over the epoch, nats; an estimate of it where the loss is one.
        validation_perplexity: After the epoch, exact.
        test_perplexity: Likewise.
        statistics: Means over the epoch: `sample_size`, `effective_sample_size`,
            `full_softmax_share`, where the estimator has them.
    """

    seconds: float
    examples: int
    loss: float
    validation_perplexity: float
    test_perplexity: float
    statistics: Mapping[str, float]

    @property
    def diverged(self) -> bool:
        """Say whether the loss or the model is no longer finite."""
        return not (math.isfinite(self.loss) and math.isfinite(self.test_perplexity))

    def __str__(self) -> str:
        """Give a line for the log."""
        drawn = [f"{name} {value:,.4g}" for name, value in self.statistics.items()]
        numbers = [
            f"{self.seconds:.1f} s",
            f"loss {self.loss:.4f}",
            f"perplexity {self.validation_perplexity:,.1f} on validation",
            f"{self.test_perplexity:,.1f} on test",
        ]
        return ", ".join(numbers + drawn)

    def to_json(self) -> dict[str, Any]:
        """Give plain values; null for what is not finite."""
        numbers = {key: value for key, value in vars(self).items() if key != "statistics"}
        return {key: _finite(value) for key, value in (numbers | dict(self.statistics)).items()}


@dataclass(frozen=True)
class EstimatorRun:
    """All epochs of one estimator."""

    name: str
    epochs: tuple[EpochRecord, ...]

    @property
    def seconds_a_word(self) -> float:
        """Give the median over the epochs, of training alone."""
        return statistics.median(epoch.seconds / epoch.examples for epoch in self.epochs)

    @property
    def last(self) -> EpochRecord:
        """Give the last epoch."""
        return self.epochs[-1]

    def epochs_to(self, perplexity: float) -> int | None:
        """Count the epochs until the test perplexity is at most so large; None: it never is."""
        reached = (n for n, one in enumerate(self.epochs, 1) if one.test_perplexity <= perplexity)
        return next(reached, None)


@dataclass(frozen=True)
class LanguageResult:
    """The experiment.

    Attributes:
        settings: What it was run with.
        facts: Counts of the text and its parts.
        unigram_perplexity: Of the test part by the words' shares of the training part alone.
        runs: One an estimator.
    """

    settings: Mapping[str, Any]
    facts: Mapping[str, int]
    unigram_perplexity: float
    runs: tuple[EstimatorRun, ...]

    @property
    def reference(self) -> EstimatorRun | None:
        """Give the full softmax's run; None where it was left out."""
        return next((run for run in self.runs if run.name == REFERENCE), None)

    def speed_up(self, run: EstimatorRun) -> float | None:
        """Give how many times faster an epoch is than the full softmax's."""
        reference = self.reference
        return None if reference is None else reference.seconds_a_word / run.seconds_a_word

    def seconds_an_epoch(self, run: EstimatorRun) -> float:
        """Give the seconds of an epoch of training alone, by the median over the epochs."""
        return run.seconds_a_word * self.facts["train_examples"]

    def perplexity_ratio(self, run: EstimatorRun) -> float | None:
        """Give the last test perplexity against the full softmax's; None if it is not finite."""
        reference = self.reference
        if reference is None or run.last.diverged or reference.last.diverged:
            return None
        return run.last.test_perplexity / reference.last.test_perplexity

    def epochs_to_equal(self, run: EstimatorRun) -> int | None:
        """Count the epochs until a run is within 5 % of the full softmax's last perplexity."""
        if self.reference is None:
            return None
        return run.epochs_to(CLOSE * self.reference.last.test_perplexity)

    def to_json(self) -> dict[str, Any]:
        """Give plain values."""
        return {
            "settings": dict(self.settings),
            "facts": dict(self.facts),
            "unigram_perplexity": self.unigram_perplexity,
            "estimators": {run.name: self._run_to_json(run) for run in self.runs},
        }

    def _run_to_json(self, run: EstimatorRun) -> dict[str, Any]:
        return {
            "seconds_an_epoch": self.seconds_an_epoch(run),
            "speed_up": self.speed_up(run),
            "perplexity_ratio": self.perplexity_ratio(run),
            "epochs_to_equal": self.epochs_to_equal(run),
            "diverged": run.last.diverged,
            "epochs": [one.to_json() for one in run.epochs],
        }


def write_language(result: LanguageResult, path: Path) -> None:
    """Write the result and the machine it was taken on, atomically, as JSON."""
    head = {"format": FORMAT, "format_version": FORMAT_VERSION, "machine": describe_machine()}
    write_json(path, head | result.to_json())


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
