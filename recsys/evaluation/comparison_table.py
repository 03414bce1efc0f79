"""A comparison as one table for a terminal."""

import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from recsys.evaluation.comparison import ComparedSystem, Comparison
from recsys.evaluation.estimates import format_estimate


def print_comparison(comparison: Comparison) -> None:
    """Print the table; a pipe gets lines that are wide enough for it."""
    width = None if sys.stdout.isatty() else 150
    Console(width=width).print(comparison_table(comparison))


def comparison_table(comparison: Comparison) -> Table:
    """Lay a comparison out for rich: a row a system, the skipped ones with the reason.

    A few of the metrics stand there; the file has all.
    """
    ks, about = comparison.ks, comparison.about
    k = 10 if 10 in ks else ks[-1]
    table = Table(
        title=f"Full catalogue of {comparison.counts['num_items']:,} items, {about['part']} part: "
        f"mean over {comparison.counts['num_users']:,} users [{comparison.level:.0%} interval]",
        title_justify="left",
        title_style="bold",
        caption="difference: to popularity, on the same users; settings: the best on validation.",
        caption_justify="left",
    )
    others = [f"recall_at_{ks[-1]}"] if ks[-1] != k else []
    others += [f"{metric}_at_{k}" for metric in ("ndcg", "mrr", "coverage")]
    table.add_column("system", no_wrap=True)
    table.add_column("settings")
    for heading in (f"recall@{k}", "difference", *map(_heading, others)):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, system in comparison.systems.items():
        table.add_row(name, *_cells(system, f"recall_at_{k}", others))
    for name, reason in comparison.skipped.items():
        table.add_row(name, f"skipped: {reason}")
    return table


def _cells(system: ComparedSystem, main: str, others: list[str]) -> list[str]:
    values = [f"{system.metrics[name].value:.4f}" for name in others if name in system.metrics]
    return [
        _settings(system.details.get("settings", {})),
        format_estimate(system.metrics.get(main)),
        format_estimate(system.difference.get(main), signed=True),
        *values,
    ]


def _settings(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in settings.items())


def _heading(name: str) -> str:
    metric, _, k = name.partition("_at_")
    return f"{metric.upper() if metric in ('ndcg', 'mrr') else metric}@{k}"
