"""The times and the memory of one job."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Measurement:
    """The times of one job.

    Attributes:
        seconds: Of each round.
        units: Work of one round: steps, users, rows.
        unit: What that work is called.
        peak_bytes: Most memory at once, where it was taken; else None.
        calls: How often a round does the job.
        floor_seconds: Least seconds of one call by the machine's rates, where they are known.
    """

    seconds: Sequence[float]
    units: int
    unit: str
    peak_bytes: int | None = None
    calls: int = 1
    floor_seconds: float | None = None

    @property
    def median_seconds(self) -> float:
        """Give the median of the rounds."""
        return statistics.median(self.seconds)

    @property
    def seconds_a_call(self) -> float:
        """Give the seconds of one call, by the median."""
        return self.median_seconds / self.calls

    @property
    def rate(self) -> float:
        """Give the units a second, by the median."""
        return self.units / self.median_seconds

    @property
    def floor_ratio(self) -> float | None:
        """Give how many times the floor a call takes, by the median."""
        return None if self.floor_seconds is None else self.seconds_a_call / self.floor_seconds

    def to_json(self) -> dict[str, Any]:
        """Give plain values; without the memory and the floor where there are none."""
        plain: dict[str, Any] = {
            "median_seconds": self.median_seconds,
            "seconds": list(self.seconds),
            "units": self.units,
            "unit": self.unit,
            "units_per_second": self.rate,
            "calls": self.calls,
        }
        if self.peak_bytes is not None:
            plain["peak_bytes"] = self.peak_bytes
        if self.floor_seconds is not None:
            plain |= {"floor_seconds": self.floor_seconds, "floor_ratio": self.floor_ratio}
        return plain
