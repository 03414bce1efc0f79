"""Sheets of small pictures with one title, and how they are written."""

from __future__ import annotations  # the types of matplotlib, which is loaded where it draws

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recsys.foundations import atomic_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT, BAND = "#222222", "#6f6f6f", "#d9d9d9"
COLORS = ("#1b5fa8", "#d1701c", "#2b8a5a", "#8a4fa3", "#a83232")


def new_sheet(
    rows: int, columns: int, *, size: tuple[float, float], title: str, subtitle: str
) -> tuple[Figure, list[Axes]]:
    """Make a figure of rows times columns pictures with one axis of sample sizes, under one title.

    Args:
        rows: At least 1.
        columns: At least 1.
        size: Width and height, inches.
        title: What the figure shows, one or more lines.
        subtitle: How to read it; one or more lines.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    width, height = size
    lines = 1 + title.count("\n")
    used = 0.3 + lines * 0.24 + (1 + subtitle.count("\n")) * 0.18  # inches, of the text
    layout = ConstrainedLayoutEngine(rect=(0, 0, 1, 1 - used / height))
    figure = Figure(figsize=size, layout=layout)
    FigureCanvasAgg(figure)
    top = 1 - 0.12 / height
    figure.text(0.12 / width, top, title, fontsize=13, fontweight="bold", color=INK, va="top")
    under = top - lines * 0.24 / height
    figure.text(0.12 / width, under, subtitle, fontsize=9.5, color=FAINT, va="top")
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    axes = list(grid.flatten())
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.grid(axis="y", color="#ececec", linewidth=0.8)
        one.set_axisbelow(True)
        one.tick_params(labelsize=8.5)
    return figure, axes


def untrained_line(about: Mapping[str, Any]) -> str:
    """Give the last line of a subtitle where the model is fresh, else nothing.

    Args:
        about: Of the diagnosis; `bundle` is None where the model was made for it.
    """
    if about.get("bundle") is not None:
        return ""
    return "\nMeasured on a fresh model that has not been trained: its scores are chance."


def log_sizes(axes: Axes, sizes: Sequence[float]) -> None:
    """Make the horizontal axis one of sample sizes, on a log scale with plain numbers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(list(sizes)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def log_errors(axes: Axes, low: float, high: float) -> None:
    """Make the vertical axis a log scale with plain numbers at the powers of ten.

    Where there are hardly two of them between `low` and `high`, its ends, also at 2 and 5 times.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.set_ylim(low, high)
    labelled = (1.0, 2.0, 5.0) if high < 50 * low else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=labelled))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def label_ends(axes: Axes, ends: Sequence[tuple[float, float, str, Any]], *, gap: float) -> None:
    """Write a label behind the end of each line, moved apart where they would overlap.

    Args:
        axes: Where.
        ends: x, y, text and colour of each.
        gap: Least distance of two labels, in units of y.
    """
    ordered = sorted(ends, key=lambda end: end[1])
    heights = _spread([y for _, y, _, _ in ordered], gap)
    for (x, _, text, color), height in zip(ordered, heights, strict=True):
        axes.annotate(
            text,
            (x, height),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            color=color,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},  # hides lines of the grid
            annotation_clip=False,
            zorder=1.5,  # above the grid, below the lines
        )


def _spread(values: Sequence[float], gap: float) -> list[float]:
    """Move rising values apart by at least a gap, and as little as that takes (least squares).

    Values less their place times the gap must not fall: neighbours that do are pooled.
    """
    pools: list[tuple[float, int]] = []  # sum and number
    for place, value in enumerate(values):
        pool = (value - place * gap, 1)
        while pools and pools[-1][0] / pools[-1][1] > pool[0] / pool[1]:
            total, number = pools.pop()
            pool = (pool[0] + total, pool[1] + number)
        pools.append(pool)
    means = [total / number for total, number in pools for _ in range(number)]
    return [mean + place * gap for place, mean in enumerate(means)]


def write_figure(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG, atomically; give its path."""
    with atomic_file(path) as temporary:
        figure.savefig(temporary, format="png", dpi=150)
    return path
