"""A number with its interval, and how one is made of values per query."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.metrics import bootstrap_interval, bootstrap_ratio_interval


@dataclass(frozen=True)
class Estimate:
    """A mean and its bootstrap interval.

    Attributes:
        value: The mean; never NaN.
        low: Lower end; None where there is no interval, as for coverage.
        high: Upper end, likewise.
    """

    value: float
    low: float | None = None
    high: float | None = None

    def excludes_0(self) -> bool:
        """Tell whether the interval lies on one side of 0."""
        return self.low is not None and self.high is not None and self.low * self.high > 0


def plain_estimates(values: Mapping[str, float]) -> dict[str, Estimate]:
    """Give numbers without an interval, such as coverage, as estimates."""
    return {name: Estimate(value) for name, value in values.items()}


def values_of(estimates: Mapping[str, Estimate]) -> dict[str, float]:
    """Give name -> mean."""
    return {name: estimate.value for name, estimate in estimates.items()}


def intervals_of(estimates: Mapping[str, Estimate]) -> dict[str, list[float]]:
    """Give name -> lower and upper end, where there is an interval."""
    return {
        name: [estimate.low, estimate.high]
        for name, estimate in estimates.items()
        if estimate.low is not None and estimate.high is not None
    }


def format_estimate(estimate: Estimate | None, *, signed: bool = False) -> str:
    """Write an estimate for a table, such as `0.1481 [0.1256, 0.1707]`; None is blank."""
    if estimate is None:
        return ""
    sign = "+" if signed else ""
    digits = 4 if max(abs(estimate.value), abs(estimate.high or 0)) < 10 else 1
    text = f"{estimate.value:{sign}.{digits}f}"
    if estimate.low is None:
        return text
    return f"{text} [{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]"


@dataclass(frozen=True)
class Resampling:
    """How intervals are made.

    Attributes:
        seed: Of the draws.
        num: Resamples; at least 1.
        level: Share of resampled means inside an interval; between 0 and 1.
    """

    seed: int
    num: int = 1000
    level: float = 0.95

    def means(self, values: Mapping[str, NDArray[np.float64]]) -> dict[str, Estimate]:
        """Estimate the mean of each metric over the queries where it is defined.

        Args:
            values: Name -> [U]; NaN where undefined.

        Returns:
            Name -> mean and interval; a metric that no query defines is left out.
        """
        if not values:
            return {}
        matrix = np.stack(list(values.values()), axis=1)  # [U, M]
        defined = np.isfinite(matrix)
        total, count = np.where(defined, matrix, 0.0).sum(axis=0), defined.sum(axis=0)
        ends = bootstrap_interval(matrix, self.seed, num=self.num, level=self.level)
        return self._named(values, total, count, ends)

    def ratios(
        self,
        names: list[Any],
        numerators: NDArray[np.float64],
        denominators: NDArray[np.float64],
    ) -> dict[Any, Estimate]:
        """Estimate sum / sum for each column, both [U, M]; an empty column is left out."""
        ends = bootstrap_ratio_interval(
            numerators, denominators, self.seed, num=self.num, level=self.level
        )
        return self._named(names, numerators.sum(axis=0), denominators.sum(axis=0), ends)

    def _named(
        self, names: Any, above: NDArray[Any], below: NDArray[Any], ends: Any
    ) -> dict[Any, Estimate]:
        return {
            name: Estimate(float(above[i] / below[i]), float(ends.low[i]), float(ends.high[i]))
            for i, name in enumerate(names)
            if below[i] > 0
        }
