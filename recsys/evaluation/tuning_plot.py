"""The tuning of an index as a picture of what index recall costs in speed."""

from __future__ import annotations  # the types of matplotlib, which is loaded where it draws

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from recsys.evaluation.figures import FAINT, INK, new_figure, with_legend
from recsys.index import Trial, Tuning

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLORS = {
    "flat": "#555555", "ivf_flat": "#1b5fa8", "ivf_fp16": "#6aa5dc", "ivf_sq8": "#2e8b57",
    "ivf_pq_fast": "#c9601a", "hnsw": "#8e4aa3", "hnsw_sq8": "#c58fd3",
}  # fmt: skip
_LINE = 0.055  # of a label, in heights of the axes
_SMALLEST, _LARGER = 20, 280  # areas of a point, in square points


def timed(tuning: Tuning) -> Sequence[Trial]:
    """Give the trials that were timed."""
    return [trial for trial in tuning.trials if trial.queries_per_second is not None]


def frontier(tuning: Tuning) -> list[Trial]:
    """Give the timed trials that no other beats in recall and in speed, by rising recall."""
    best, kept = 0.0, []
    for trial in sorted(timed(tuning), key=_point, reverse=True):
        if _point(trial)[1] > best:
            best = _point(trial)[1]
            kept.append(trial)
    return kept[::-1]


def tuning_figure(tuning: Tuning) -> Figure:
    """Draw a point a timed trial, its area the memory, and name those of the frontier."""
    k, target = tuning.target.target_k, tuning.target
    threads = f"{target.search_threads} thread{'s' if target.search_threads > 1 else ''}"
    figure, axes = new_figure(
        "What index recall costs in speed",
        f"{tuning.num_queries} queries that tuned nothing, {threads}; area: memory",
    )
    axes.plot(*zip(*map(_point, frontier(tuning)), strict=True), color=FAINT, linewidth=1)
    _draw_points(axes, tuning)
    axes.axvline(target.target_recall, color=FAINT, linestyle=":")
    axes.set_yscale("log")
    axes.margins(x=0.08, y=0.1)
    axes.set_xlabel(f"Index recall@{k}: share of the exact top {k} found")
    axes.set_ylabel(f"Queries a second, {threads}")
    figure.set_size_inches(10, 5.5)
    figure.draw_without_rendering()  # now the axes know their ends
    _name(axes, frontier(tuning))
    return with_legend(figure, axes)


def _draw_points(axes: Axes, tuning: Tuning) -> None:
    largest = max(one.index_bytes or 1 for one in timed(tuning))
    for kind, color in _COLORS.items():
        of_kind = [one for one in timed(tuning) if one.kind == kind]
        for place, one in enumerate(of_kind):
            axes.scatter(
                *_point(one),
                s=_SMALLEST + _LARGER * (one.index_bytes or 0) / largest,
                color=color,
                alpha=0.7,
                edgecolors=INK if one.outcome == "chosen" else "none",
                linewidths=1.5,
                label=None if place else kind,
            )


def _name(axes: Axes, trials: Sequence[Trial]) -> None:
    """Name points in a column beside the axes, each at its height where there is room."""
    to_axes = axes.transData + axes.transAxes.inverted()
    wanted = [float(to_axes.transform(_point(one))[1]) for one in trials]
    for one, height in zip(trials, spread_out(wanted, _LINE), strict=True):
        chosen = one.outcome == "chosen"
        axes.annotate(
            f"{one.name}, built in {one.build_seconds or 0:.0f} s",
            _point(one),
            xytext=(1.03, height),
            textcoords="axes fraction",
            va="center",
            fontsize=8,
            fontweight="bold" if chosen else "normal",
            color=INK,
            arrowprops={"arrowstyle": "-", "color": FAINT, "linewidth": 0.5},
            annotation_clip=False,
        )


def spread_out(heights: Sequence[float], least: float) -> list[float]:
    """Move heights as little as is simple so that any two are at least so far apart.

    Args:
        heights: In any order.
        least: Above 0.

    Returns:
        In the same order; of two, the higher stays the higher.
    """
    order = sorted(range(len(heights)), key=lambda place: heights[place])
    moved = list(heights)
    for lower, upper in itertools.pairwise(order):
        moved[upper] = max(moved[upper], moved[lower] + least)
    excess = max(max(moved) - max([1.0, *heights]), 0.0) if moved else 0.0
    return [height - excess for height in moved]


def _point(trial: Trial) -> tuple[float, float]:
    return trial.recall or 0.0, trial.queries_per_second or 0.0
