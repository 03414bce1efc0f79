"""Benchmarks as one table for a terminal."""

import sys
from collections.abc import Sequence

import torch
from rich.console import Console
from rich.table import Table

from recsys.benchmark.result import BenchmarkResult, Measurement, Ratio


def print_benchmarks(results: Sequence[BenchmarkResult]) -> None:
    """Print the table; a pipe gets lines that are wide enough for it."""
    width = None if sys.stdout.isatty() else 150
    Console(width=width).print(benchmark_table(results))


def benchmark_table(results: Sequence[BenchmarkResult]) -> Table:
    """Lay results out for rich: a row a ratio."""
    threads = torch.get_num_threads()
    table = Table(
        title=f"Measured in turn on {threads} {'thread' if threads == 1 else 'threads'}: medians",
        title_justify="left",
        title_style="bold",
        caption="ratio: first / second, median of the rounds (lowest to highest); below 1 the "
        "first takes less.",
        caption_justify="left",
    )
    for heading in ("benchmark", "first", "second"):
        table.add_column(heading)
    table.add_column("of", no_wrap=True)
    for heading in ("first", "second", "ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        for place, ratio in enumerate(result.ratios):
            measured = [result.measurements[name] for name in (ratio.first, ratio.second)]
            table.add_row(
                "" if place else result.name,
                ratio.first,
                ratio.second,
                ratio.quantity,
                *(_amount(one, ratio.quantity) for one in measured),
                _ratio(ratio),
                end_section=place == len(result.ratios) - 1,
            )
    return table


def _amount(measurement: Measurement, quantity: str) -> str:
    if quantity == "time":
        return f"{measurement.rate:,.0f} {measurement.unit}/s"
    return f"{(measurement.peak_bytes or 0) / 1e6:,.1f} MB"


def _ratio(ratio: Ratio) -> str:
    if ratio.low == ratio.high:
        return f"{ratio.value:.3g}"
    return f"{ratio.value:.3g} ({ratio.low:.3g} to {ratio.high:.3g})"
