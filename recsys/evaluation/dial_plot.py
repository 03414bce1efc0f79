"""What the popularity dial trades, as a picture: recall against coverage."""

from __future__ import annotations  # the types of matplotlib, which is loaded where it draws

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recsys.evaluation.dial_judge import DialPoint
from recsys.evaluation.figures import FAINT, INK, MODEL, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def dial_plot(points: Sequence[DialPoint], k: int, *, where: str, level: float) -> Figure:
    """Draw one point a setting, joined in their order, with the intervals of recall.

    Args:
        points: By rising alpha; one of them is at 0.
        k: Length of the list that was judged.
        where: The part, in words.
        level: Of the intervals.
    """
    coverage, recall = f"coverage_at_{k}", f"recall_at_{k}"
    figure, axes = new_figure(
        _title(points, k),
        f"Score - alpha * temperature * log(popularity), {where}; whiskers: {level:.0%} "
        "bootstrap intervals",
    )
    shown = [point for point in points if recall in point.metrics]
    x = [point.metrics[coverage].value for point in shown]
    recalls = [point.metrics[recall] for point in shown]
    y = [estimate.value for estimate in recalls]
    low = [one.value if one.low is None else one.low for one in recalls]
    high = [one.value if one.high is None else one.high for one in recalls]
    axes.vlines(x, low, high, color=FAINT, linewidth=1)  # of few resamples some lie to one side
    axes.plot(x, y, "o-", color=MODEL, ms=5, linewidth=1)
    for point, across, up in zip(shown, x, y, strict=True):
        axes.annotate(
            f"alpha {point.alpha:g}",
            (across, up),
            xytext=(6, 6),
            textcoords="offset points",
            fontsize=9,
            color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5},
        )
    axes.margins(x=0.12)
    axes.set_xlabel(f"Coverage@{k}: share of the catalogue that stands in anyone's list")
    axes.set_ylabel(f"Recall@{k}: share of a user's chosen items found")
    axes.set_ylim(bottom=0)
    return figure


def _title(points: Sequence[DialPoint], k: int) -> str:
    """Say what the largest setting does to recall and coverage."""
    coverage, recall = f"coverage_at_{k}", f"recall_at_{k}"
    plain = next(point for point in points if point.alpha == 0)
    last = points[-1] if points[-1].alpha else points[0]
    if not all(name in point.metrics for point in (plain, last) for name in (recall, coverage)):
        return "Popularity dial"
    before, after = (
        [point.metrics[name].value for name in (coverage, recall)] for point in (plain, last)
    )
    return (
        f"Alpha {last.alpha:g}: coverage@{k} {before[0]:.3f} to {after[0]:.3f}, "
        f"recall@{k} {before[1]:.3f} to {after[1]:.3f}"
    )
