"""The tuning of an index as a JSON file, a table and a picture of what recall costs in speed."""

import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from recsys.evaluation.tuning_plot import timed, tuning_figure
from recsys.foundations import atomic_file, write_json
from recsys.index import Trial, Tuning

_HEADINGS = ("index", "recall", "queries/s", "ms a block", "x exact", "memory", "build", "outcome")


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
            tuning_figure(tuning).savefig(temporary, format="png", dpi=150)
    return paths


def print_tuning(tuning: Tuning) -> None:
    """Print a row a trial, where something was measured."""
    if tuning.trials:
        Console(width=None if sys.stdout.isatty() else 130).print(tuning_table(tuning))


def tuning_table(tuning: Tuning) -> Table:
    """Lay the trials out for rich, in the order they were made."""
    k = tuning.target.target_k
    wanted = f"index recall@{k} of {tuning.target.target_recall:g}"
    if tuning.target.latency_ms is not None:
        at_once = tuning.target.queries_at_once
        wanted = f"{tuning.target.latency_ms:g} ms a block of {at_once} queries"
    title = f"Index, tuned for {wanted}: {tuning.about}"
    table = Table(title=title, title_justify="left", title_style="bold")
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading in ("index", "outcome") else "right")
    for trial in tuning.trials:
        table.add_row(*_cells(trial), style="bold" if trial.outcome == "chosen" else None)
    return table


def _cells(trial: Trial) -> list[str]:
    recall = "" if trial.recall is None else f"{trial.recall:.4f}"
    if trial.recall_low is not None and trial.kind != "flat":
        recall += f" [{trial.recall_low:.4f}, {trial.recall_high:.4f}]"
    return [
        trial.name,
        recall,
        "" if trial.queries_per_second is None else f"{trial.queries_per_second:,.0f}",
        "" if trial.block_ms is None else f"{trial.block_ms:.3g}",
        "" if trial.speedup is None else f"{trial.speedup:.2f}",
        "" if trial.index_bytes is None else f"{trial.index_bytes / 1e6:,.1f} MB",
        "" if trial.build_seconds is None else f"{trial.build_seconds:.1f} s",
        trial.outcome + (f": {trial.reason}" if trial.reason else ""),
    ]
