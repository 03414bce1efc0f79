"""The benchmark of whole trainings as two pictures: examples a second, and recall by seconds."""

from __future__ import annotations  # the types of matplotlib, which is loaded where it draws

from pathlib import Path
from typing import TYPE_CHECKING

from recsys.benchmark.train_result import TrainResult
from recsys.evaluation import new_figure
from recsys.foundations import atomic_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OURS, _OTHER, _INK = "#1b5fa8", "#8a8a8a", "#222222"


def write_train_plots(result: TrainResult, folder: Path) -> list[Path]:
    """Write `train_rates.png`, and `train_recall.png` where recall was measured, each atomically.

    Args:
        result: What was measured.
        folder: Where the files go; made if it is not there.

    Returns:
        The paths written.
    """
    figures = {"train_rates.png": _rates(result)}
    if result.points:
        figures["train_recall.png"] = _recall(result)
    for name, figure in figures.items():
        with atomic_file(folder / name) as temporary:
            figure.savefig(temporary, format="png", dpi=150)
    return [folder / name for name in figures]


def _rates(result: TrainResult) -> Figure:
    measured = result.rates.measurements
    rates = {name: one.rate for name, one in measured.items() if one.unit == "examples"}
    figure, axes = new_figure("Examples a second", "medians; a positive is an example")
    colors = [_OTHER if "naive" in name else _OURS for name in rates]
    bars = axes.barh(list(rates), list(rates.values()), color=colors)
    axes.bar_label(bars, [f"{rate:,.0f}" for rate in rates.values()], padding=4, color=_INK)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel("Examples a second")
    return figure


def _recall(result: TrainResult) -> Figure:
    figure, axes = new_figure(f"Recall@{result.k} by training time", "a mark an epoch")
    seconds = [point.seconds for point in result.points]
    recalls = [point.recall for point in result.points]
    axes.plot(seconds, recalls, marker="o", color=_OURS, label="profile tower")
    if result.target is not None:
        peer = result.rates.measurements["implicit's iALS"].median_seconds
        axes.plot([peer], [result.target], marker="D", color=_INK, linestyle="", label="implicit")
        axes.axhline(result.target, color=_OTHER, linestyle=":")
    axes.set_xlim(left=0)
    axes.set_xlabel("Seconds of training, judging not counted")
    axes.legend(frameon=False, loc="lower right")
    return figure
