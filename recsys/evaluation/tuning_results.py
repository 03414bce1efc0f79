"""The tuning of an index as a JSON file, a table and a picture of what recall costs in speed."""

from __future__ import annotations  # the types of matplotlib, which is loaded where it draws

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from recsys.evaluation.figures import FAINT, INK, MODEL, new_figure
from recsys.foundations import atomic_file, write_json
from recsys.index import Trial, Tuning

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEADINGS = ("index", "recall", "queries/s", "x exact", "memory", "build", "outcome")


def write_tuning(tuning: Tuning, folder: Path) -> list[Path]:
    """Write `index_tuning.json`, and `index_tuning.png` where speed was measured, each atomically.

    Args:
        tuning: What `tune_index` gave.
        folder: Where the files go.

    Returns:
        The paths written.
    """
    paths = [folder / "index_tuning.json"]
    write_json(paths[0], tuning.to_json())
    if timed(tuning):
        paths.append(folder / "index_tuning.png")
        with atomic_file(paths[-1]) as temporary:
            _figure(tuning).savefig(temporary, format="png", dpi=150)
    return paths


def print_tuning(tuning: Tuning) -> None:
    """Print a row a trial, where something was measured."""
    if tuning.trials:
        Console(width=None if sys.stdout.isatty() else 130).print(tuning_table(tuning))


def tuning_table(tuning: Tuning) -> Table:
    """Lay the trials out for rich, in the order they were made."""
    k = tuning.target.target_k
    title = f"Index, tuned for index recall@{k} of {tuning.target.target_recall:g}: {tuning.about}"
    table = Table(title=title, title_justify="left", title_style="bold")
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading in ("index", "outcome") else "right")
    for trial in tuning.trials:
        table.add_row(*_cells(trial), style="bold" if trial.outcome == "chosen" else None)
    return table


def timed(tuning: Tuning) -> Sequence[Trial]:
    """Give the trials that met the target and were timed."""
    return [trial for trial in tuning.trials if trial.queries_per_second is not None]


def frontier(tuning: Tuning) -> list[Trial]:
    """Give the timed trials that no other beats in recall and in speed, by rising recall."""
    best, kept = 0.0, []
    for trial in sorted(timed(tuning), key=_point, reverse=True):
        if _point(trial)[1] > best:
            best = _point(trial)[1]
            kept.append(trial)
    return kept[::-1]


def _cells(trial: Trial) -> list[str]:
    recall = "" if trial.recall is None else f"{trial.recall:.4f}"
    if trial.recall_low is not None and trial.kind != "flat":
        recall += f" [{trial.recall_low:.4f}, {trial.recall_high:.4f}]"
    return [
        trial.name,
        recall,
        "" if trial.queries_per_second is None else f"{trial.queries_per_second:,.0f}",
        "" if trial.speedup is None else f"{trial.speedup:.2f}",
        "" if trial.index_bytes is None else f"{trial.index_bytes / 1e6:,.1f} MB",
        "" if trial.build_seconds is None else f"{trial.build_seconds:.1f} s",
        trial.outcome + (f": {trial.reason}" if trial.reason else ""),
    ]


def _figure(tuning: Tuning) -> Figure:
    """Draw a point a timed trial, its area the memory, and the frontier."""
    k, shown = tuning.target.target_k, timed(tuning)
    figure, axes = new_figure(
        "What index recall costs in speed",
        f"{tuning.num_queries} queries that tuned nothing, one thread; area: memory; "
        "seconds: of the build",
    )
    axes.plot(*zip(*map(_point, frontier(tuning)), strict=True), color=FAINT, linewidth=1)
    largest = max(one.index_bytes or 1 for one in shown)
    for one in shown:
        x, y = _point(one)
        color = MODEL if one.outcome == "chosen" else FAINT
        axes.scatter(x, y, s=20 + 380 * (one.index_bytes or 0) / largest, color=color, alpha=0.7)
        axes.annotate(
            f"{one.name}, {one.build_seconds or 0:.0f} s",
            (x, y),
            xytext=(8, 4),
            textcoords="offset points",
            fontsize=8,
            color=INK,
        )
    axes.axvline(tuning.target.target_recall, color=FAINT, linestyle=":")
    axes.set_yscale("log")
    axes.margins(x=0.25, y=0.15)
    axes.set_xlabel(f"Index recall@{k}: share of the exact top {k} found")
    axes.set_ylabel("Queries a second, times exact search")
    return figure


def _point(trial: Trial) -> tuple[float, float]:
    return trial.recall or 0.0, trial.speedup or 0.0
