"""Benchmarks as rows of text, for a terminal and for a page alike."""

import statistics
from collections.abc import Iterator, Sequence

from recsys.benchmark.growth import Growth
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.result import BenchmarkResult, Ratio

HEADINGS = ("benchmark", "measured", "rate", "ms (spread)", "/ floor", "/ other", "peak memory")
GROWTH_HEADINGS = ("benchmark", "by", "size", "measured", "ms", "/ floor", "peak memory")
Row = tuple[str, ...]


def measurement_rows(results: Sequence[BenchmarkResult]) -> Iterator[Row]:
    """Give a row a measurement, as HEADINGS names its cells; lines of a cell end in a newline.

    What it is compared with stands in the row of the first of a pair.
    """
    for result in results:
        for name, one in result.measurements.items():
            ratios = [ratio for ratio in result.ratios if ratio.first == name]
            times = [ratio for ratio in ratios if ratio.quantity == "time"]
            memory = [ratio for ratio in ratios if ratio.quantity != "time"]
            yield (
                result.name,
                name,
                f"{_number(one.rate)} {one.unit}/s",
                _milliseconds(one),
                _times(one.floor_ratio),
                "\n".join(_ratio(ratio) for ratio in times),
                "\n".join([_megabytes(one.peak_bytes), *(_ratio(ratio) for ratio in memory)]),
            )


def growth_rows(results: Sequence[BenchmarkResult]) -> Iterator[Row]:
    """Give a row a point of every line of growth, as GROWTH_HEADINGS names its cells."""
    for result in results:
        for line in result.growth:
            for place, size in enumerate(line.sizes):
                yield (result.name, line.axis, f"{size:,}", line.name, *_point(line, place))


def _point(line: Growth, place: int) -> Row:
    seconds = line.seconds[place]
    floor = None if line.floor_seconds is None else seconds / line.floor_seconds[place]
    peak = None if line.peak_bytes is None else line.peak_bytes[place]
    return _number(1e3 * seconds), _times(floor), _megabytes(peak)


def _milliseconds(one: Measurement) -> str:
    """Give the median of a call and the spread of the rounds."""
    middle, low, high = (
        _number(1e3 * seconds / one.calls)
        for seconds in (statistics.median(one.seconds), min(one.seconds), max(one.seconds))
    )
    return middle if len(one.seconds) == 1 else f"{middle} ({low} to {high})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 99.95 else f"{value:,.3g}"


def _times(value: float | None) -> str:
    return "" if value is None else _number(value)


def _megabytes(value: int | None) -> str:
    return "" if value is None else f"{value / 1e6:,.1f} MB"


def _ratio(ratio: Ratio) -> str:
    spread = "" if ratio.low == ratio.high else f" ({ratio.low:.3g} to {ratio.high:.3g})"
    return f"{ratio.value:.3g}{spread} of {ratio.second}"
