"""Benchmarks as tables for a terminal."""

import sys
from collections.abc import Sequence

import torch
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from recsys.benchmark.floor import MachineRates
from recsys.benchmark.result import BenchmarkResult
from recsys.benchmark.rows import HEADINGS, Row, growth_tables, measurement_rows

CAPTION = (
    "ms: of one call, median of the rounds (lowest to highest). / floor: times what the machine's "
    "rates allow at least. / other: time of one unit against the other, median of the rounds' "
    "ratios (lowest to highest); below 1 it takes less."
)


def print_benchmarks(results: Sequence[BenchmarkResult], rates: MachineRates | None = None) -> None:
    """Print the tables; a pipe gets lines that are wide enough for them."""
    width = None if sys.stdout.isatty() else 170
    console = Console(width=width)
    console.print(benchmark_table(results, rates))
    for result in results:
        for what, headings, rows in growth_tables(result):
            console.print(_table(f"{result.name} {what}", headings, rows))


def benchmark_table(results: Sequence[BenchmarkResult], rates: MachineRates | None = None) -> Table:
    """Lay results out for rich: a row a measurement, and below them what was measured."""
    table = _table(headline(rates), HEADINGS, list(measurement_rows(results)))
    lines = [CAPTION, *(f"{result.name}: {result.sentence()}" for result in results)]
    table.caption, table.caption_justify = escape("\n".join(lines)), "left"
    return table


def headline(rates: MachineRates | None) -> str:
    """Say how it was measured, and the rates of the machine."""
    threads = torch.get_num_threads()
    title = f"Measured in turn on {threads} {'thread' if threads == 1 else 'threads'}"
    return title if rates is None else f"{title}; this machine: {rates}"


def _table(title: str, headings: Row, rows: Sequence[Row]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for heading in headings:
        words = heading in ("benchmark", "measured", "/ other", "index")
        table.add_column(heading, justify="left" if words else "right", no_wrap=not words)
    by_benchmark = headings[0] == HEADINGS[0]  # whose name stands once, above its rows
    for place, row in enumerate(rows):
        repeats = by_benchmark and place > 0 and rows[place - 1][0] == row[0]
        is_last = by_benchmark and rows[min(place + 1, len(rows) - 1)][0] != row[0]
        table.add_row("" if repeats else row[0], *row[1:], end_section=is_last)
    return table
