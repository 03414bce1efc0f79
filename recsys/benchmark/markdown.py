"""Benchmarks as a page of Markdown, to be pasted into another."""

from collections.abc import Sequence
from pathlib import Path

from recsys.benchmark.floor import MachineRates
from recsys.benchmark.machine import describe_machine
from recsys.benchmark.result import BenchmarkResult
from recsys.benchmark.rows import HEADINGS, Row, growth_tables, measurement_rows
from recsys.benchmark.table import headline
from recsys.foundations import atomic_file


def write_markdown(
    results: Sequence[BenchmarkResult], path: Path, rates: MachineRates | None = None
) -> None:
    """Write a table a benchmark, each with what it compares and with which sizes, atomically."""
    machine = describe_machine()
    lines = [
        f"{headline(rates)}.",
        f"{machine['processor']}, {machine['usable_cores']} cores, torch {machine['torch']}.",
    ]
    for result in results:
        lines += ["", f"### {result.name}", "", result.sentence(), ""]
        lines += _table(HEADINGS[1:], [row[1:] for row in measurement_rows([result])])
        for what, headings, rows in growth_tables(result):
            lines += ["", f"{what[:1].upper()}{what[1:]}:", "", *_table(headings, rows)]
    with atomic_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _table(headings: Row, rows: Sequence[Row]) -> list[str]:
    """Lay rows out, without columns that are empty."""
    shown = [i for i in range(len(headings)) if any(row[i] for row in rows)]
    words = ("measured", "/ other", "index")
    rule = ["---" if headings[i] in words else "---:" for i in shown]
    cells = [[row[i].replace("|", "\\|").replace("\n", "<br>") for i in shown] for row in rows]
    return [f"| {' | '.join(one)} |" for one in ([headings[i] for i in shown], rule, *cells)]
