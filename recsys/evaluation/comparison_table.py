"""A comparison as one table for a terminal."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from recsys.evaluation.compare_rankers import MODEL
from recsys.evaluation.comparison import ComparedSystem, Comparison
from recsys.evaluation.estimates import format_estimate
from recsys.evaluation.measures import shown_k

_OFTEN_QUOTED = (20, 100)  # lengths at which other work states recall and NDCG


def print_comparison(comparison: Comparison) -> None:
    """Print the table; a pipe gets lines that are wide enough for it."""
    width = None if sys.stdout.isatty() else 180
    Console(width=width).print(comparison_table(comparison))


def comparison_table(comparison: Comparison) -> Table:
    """Lay a comparison out for rich: a row a system, and under them why others were skipped.

    The main column is recall at 10, or at the largest k without it. Beside it stand recall at 20,
    100 and the largest k, NDCG at the main k and at 100, as far as they are asked for, MRR and
    coverage; the file has all.
    With a model the difference is that of the model to each system, else of each to popularity.
    """
    main, against_model = shown_k(comparison.ks), MODEL in comparison.systems
    difference = "of the model to this system" if against_model else "of this system to popularity"
    note = f"difference: {difference}, on the same users; settings: the best on validation."
    skipped = [f"{name} is skipped: {reason}." for name, reason in comparison.skipped.items()]
    table = Table(
        title=_title(comparison),
        title_justify="left",
        title_style="bold",
        caption="\n".join([note, *skipped]),
        caption_justify="left",
    )
    others = _other_metrics(comparison.ks, main)
    table.add_column("system", no_wrap=True)
    table.add_column("settings")
    for heading in (f"recall@{main}", "difference", *map(_heading, others)):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, system in comparison.systems.items():
        table.add_row(name, *_cells(system, f"recall_at_{main}", others, against_model))
    if comparison.chance:
        shown = [comparison.chance.get(name) for name in (f"recall_at_{main}", *others)]
        first, *rest = ["" if value is None else f"{value:.4f}" for value in shown]
        table.add_row("chance", "", first, "", *rest)
    return table


def _title(comparison: Comparison) -> str:
    counts, about = comparison.counts, comparison.about
    what = f"Full catalogue of {counts['num_items']:,} items"
    if comparison.chance:
        what = f"Cold items ({counts['num_ranked_items']:,} of {counts['num_items']:,}) "
        what += "among themselves"
    users = f"mean over {counts['num_users']:,} users [{comparison.level:.0%} interval]"
    return f"{what}, {about['part']} part: {users}"


def _other_metrics(ks: Sequence[int], main: int) -> list[str]:
    """Name the metrics beside the main one."""
    recalls = sorted({k for k in (*_OFTEN_QUOTED, ks[-1]) if k in ks and k != main})
    ranked = [main, *(k for k in _OFTEN_QUOTED[1:] if k in ks and k != main)]
    return [
        *(f"recall_at_{k}" for k in recalls),
        *(f"ndcg_at_{k}" for k in ranked),
        f"mrr_at_{main}",
        f"coverage_at_{main}",
    ]


def _cells(system: ComparedSystem, main: str, others: list[str], against_model: bool) -> list[str]:
    values = [f"{system.metrics[name].value:.4f}" for name in others if name in system.metrics]
    difference = system.behind_model if against_model else system.difference
    return [
        _settings(system.details.get("settings", {})),
        format_estimate(system.metrics.get(main)),
        format_estimate(difference.get(main), signed=True),
        *values,
    ]


def _settings(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in settings.items())


def _heading(name: str) -> str:
    metric, _, k = name.partition("_at_")
    return f"{metric.upper() if metric in ('ndcg', 'mrr') else metric}@{k}"
