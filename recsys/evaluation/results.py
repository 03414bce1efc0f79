"""A report as files and on the terminal."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from recsys.evaluation.plots import write_plots
from recsys.evaluation.report import Report
from recsys.evaluation.table import report_table


def write_results(
    report: Report, run_dir: Path, history: Sequence[Mapping[str, float]] = ()
) -> list[Path]:
    """Write `report.json`, `per_user.parquet` and the plots; give their paths.

    Args:
        report: The report.
        run_dir: The plots go into its folder `plots`.
        history: The records of the epochs, for the training curves.
    """
    files = [run_dir / "report.json", run_dir / "per_user.parquet"]
    report.write(files[0])
    report.write_per_user(files[1])
    return files + write_plots(report, run_dir / "plots", history)


def print_report(report: Report) -> None:
    """Print the report's tables; a pipe gets lines that are wide enough for them."""
    width = None if sys.stdout.isatty() else 150
    Console(width=width).print(report_table(report))
