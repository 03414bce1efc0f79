"""What the pictures have in common: colours, a titled figure, a legend that hides nothing."""

from __future__ import annotations  # the types of matplotlib, which is loaded where it draws

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MODEL, INK, FAINT = "#1b5fa8", "#222222", "#8a8a8a"


def new_figure(title: str, subtitle: str) -> tuple[Figure, Axes]:
    """Make a figure of one panel."""
    figure, [axes] = new_panels(title, subtitle, heights=(5,))
    return figure, axes


def new_panels(title: str, subtitle: str, *, heights: Sequence[float]) -> tuple[Figure, list[Axes]]:
    """Make a figure of panels below one another, which share the horizontal axis.

    Args:
        title: In bold, above the first panel.
        subtitle: Below it.
        heights: Of each panel, in inches.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, sum(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    ratios = {"height_ratios": list(heights)}
    grid = figure.subplots(len(heights), 1, sharex=True, squeeze=False, gridspec_kw=ratios)
    panels = [axes for [axes] in grid]
    panels[0].set_title(f"{title}\n", loc="left", fontsize=12, fontweight="bold", color=INK)
    style = {"fontsize": 9.5, "color": FAINT, "va": "bottom"}
    panels[0].text(0, 1.02, subtitle, transform=panels[0].transAxes, **style)
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#e4e4e4", linewidth=0.8)
        axes.set_axisbelow(True)
    return figure, panels


def with_legend(figure: Figure, axes: Axes, handles: Sequence[Artist] | None = None) -> Figure:
    """Put the legend below the axes, where it hides nothing."""
    handles = handles or axes.get_legend_handles_labels()[0]
    figure.legend(handles=handles, frameon=False, loc="outside lower center", ncols=len(handles))
    return figure
