"""A diagnosis: every measurement, what was left out, the advice, and its file."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recsys.diagnosis.advice import Advice
from recsys.diagnosis.kind import AIMS
from recsys.diagnosis.measurement import Measurement
from recsys.diagnosis.recommended import RecommendedPopularity
from recsys.diagnosis.registry import KINDS
from recsys.foundations import write_json

FORMAT = "recsys-diagnosis"
FORMAT_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The result; nothing in it is NaN, what has no meaning is None.

    Attributes:
        about: The model, the data, and the settings that shape the numbers.
        level: Share of resampled values inside an interval.
        measurements: In the order of the estimators, sample sizes rising.
        skipped: Estimator -> why it was left out.
        popularity: Of what the model recommends.
        advice: One sentence.
    """

    about: Mapping[str, Any]
    level: float
    measurements: tuple[Measurement, ...]
    skipped: Mapping[str, str]
    popularity: RecommendedPopularity
    advice: Advice

    def by_estimator(self) -> dict[str, list[Measurement]]:
        """Group the measurements: name -> its sample sizes, rising."""
        groups: dict[str, list[Measurement]] = {}
        for one in self.measurements:
            groups.setdefault(one.estimator, []).append(one)
        return groups

    def to_json(self) -> dict[str, Any]:
        """Give the content of the file."""
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "about": dict(self.about),
            "interval_level": self.level,
            "estimators": {
                name: {
                    "label": KINDS[name].label,
                    "family": KINDS[name].family,
                    "aim": KINDS[name].aim,
                    "aim_meaning": AIMS[KINDS[name].aim][1],
                }
                for name in self.by_estimator()
            },
            "measurements": [one.to_json() for one in self.measurements],
            "skipped": dict(self.skipped),
            "recommended_popularity": self.popularity.to_json(),
            "advice": self.advice.to_json(),
        }

    def flat_metrics(self) -> dict[str, float]:
        """Give the table's main numbers, as trackers take them: `<estimator>_<size>_<number>`."""
        flat: dict[str, float] = {}
        for one in self.measurements:
            prefix = f"{one.estimator}_{one.sample_size}"
            scores = one.gradients["scores"]
            flat |= {f"{prefix}_bias": scores.bias.value, f"{prefix}_noise": scores.noise.value}
            if one.step is not None:
                flat[f"{prefix}_step_error"] = one.step.error.value
                flat[f"{prefix}_step_cosine"] = one.step.cosine.value
                flat[f"{prefix}_step_seconds"] = one.step.seconds
        return flat

    def write(self, path: Path) -> Path:
        """Write the file atomically; give its path."""
        write_json(path, self.to_json())
        return path
