"""Benchmarks as rows of text, for a terminal and for a page alike."""

import statistics
from collections.abc import Iterator, Sequence

from recsys.benchmark.growth import Growth, grouped
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.result import BenchmarkResult, Ratio

HEADINGS = ("benchmark", "measured", "rate", "ms (spread)", "/ floor", "/ other", "peak memory")
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


def growth_tables(result: BenchmarkResult) -> Iterator[tuple[str, Row, list[Row]]]:
    """Give a table for each size and group of jobs: what it is of, headings, and a row a job.

    Further tables of the benchmark follow as they are.

    A cell holds the milliseconds of a call, how many times the floor that is, and the peak memory,
    as far as they are known; the last one, where a job has two sizes, how many times longer the
    largest takes than the smallest.
    """
    for what, lines in grouped(result.growth).items():
        sizes = sorted({size for line in lines for size in line.sizes})
        rows = [_growth_row(line, sizes) for line in lines]
        headings = ("measured", *(f"{size:,}" for size in sizes), "last / first")
        width = len(headings) if any(row[-1] for row in rows) else len(headings) - 1
        yield what, headings[:width], [row[:width] for row in rows]
    for table in result.tables:
        yield table.title, table.headings, list(table.rows)


def _growth_row(line: Growth, sizes: Sequence[int]) -> Row:
    cells = dict(zip(line.sizes, (_point(line, i) for i in range(len(line.sizes))), strict=True))
    growth = line.seconds[-1] / line.seconds[0] if len(line.sizes) > 1 else None
    return (line.name, *(cells.get(size, "") for size in sizes), _times(growth))


def _point(line: Growth, place: int) -> str:
    seconds = line.seconds[place]
    floor = None if line.floor_seconds is None else seconds / line.floor_seconds[place]
    peak = None if line.peak_bytes is None else line.peak_bytes[place]
    parts = [f"{_number(1e3 * seconds)} ms", floor and f"{_times(floor)} x floor", _megabytes(peak)]
    return "\n".join(part for part in parts if part)


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
