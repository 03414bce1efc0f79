"""What a benchmark measured."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recsys.benchmark.floor import MachineRates
from recsys.benchmark.growth import Growth
from recsys.benchmark.machine import describe_machine
from recsys.benchmark.measurement import Measurement
from recsys.foundations import write_json

FORMAT = "recsys-benchmark"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class Ratio:
    """Two measurements of one benchmark against each other.

    Attributes:
        first: Name of a measurement.
        second: Name of what it is compared with.
        quantity: `time` (seconds a unit) or `peak memory`: first / second, below 1 is in favour
            of the first.
        value: The median of the rounds' ratios.
        low: The lowest of the rounds.
        high: The highest.
    """

    first: str
    second: str
    quantity: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class NamedTable:
    """Further figures of a benchmark, as text.

    Attributes:
        title: What they are.
        headings: Of the columns.
        rows: A cell a heading.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class BenchmarkResult:
    """One benchmark.

    Attributes:
        name: As in the command.
        about: What was compared, in a sentence.
        settings: Sizes.
        measurements: By name.
        ratios: Of pairs of them.
        growth: How figures change with a size; empty where no size was varied.
        tables: Further figures.
    """

    name: str
    about: str
    settings: Mapping[str, Any]
    measurements: Mapping[str, Measurement]
    ratios: tuple[Ratio, ...]
    growth: tuple[Growth, ...] = ()
    tables: tuple[NamedTable, ...] = ()

    def sentence(self) -> str:
        """Say what was compared, and with which sizes."""
        sizes = ", ".join(f"{name} = {value}" for name, value in self.settings.items())
        return f"{self.about[:1].upper()}{self.about[1:]}. {sizes}."

    def to_json(self) -> dict[str, Any]:
        """Give plain values."""
        return {
            "about": self.about,
            "settings": dict(self.settings),
            "measurements": {name: one.to_json() for name, one in self.measurements.items()},
            "ratios": [vars(ratio) for ratio in self.ratios],
            "growth": [one.to_json() for one in self.growth],
            "tables": [vars(table) for table in self.tables],
        }


def time_ratio(measurements: Mapping[str, Measurement], first: str, second: str) -> Ratio:
    """Compare the seconds a unit of two measurements, round by round."""
    one, other = measurements[first], measurements[second]
    ratios = [
        (a / one.units) / (b / other.units) for a, b in zip(one.seconds, other.seconds, strict=True)
    ]
    return Ratio(first, second, "time", statistics.median(ratios), min(ratios), max(ratios))


def memory_ratio(measurements: Mapping[str, Measurement], first: str, second: str) -> Ratio:
    """Compare the peak memory of two measurements that have it."""
    one, other = measurements[first].peak_bytes, measurements[second].peak_bytes
    ratio = (one or 0) / (other or 1)
    return Ratio(first, second, "peak memory", ratio, ratio, ratio)


def write_benchmarks(
    results: Sequence[BenchmarkResult], path: Path, rates: MachineRates | None = None
) -> None:
    """Write results, the machine they were taken on and its rates, atomically, as JSON."""
    measured = {} if rates is None else {"rates": rates.to_json()}
    write_json(
        path,
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "machine": describe_machine() | measured,
            "results": {result.name: result.to_json() for result in results},
        },
    )
