"""Growth as pictures: seconds of a call over a size, both logarithmic, with the floor."""

from __future__ import annotations  # the types of matplotlib, which is loaded where it draws

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recsys.benchmark.growth import Growth
from recsys.benchmark.result import BenchmarkResult
from recsys.evaluation import new_figure
from recsys.foundations import atomic_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLORS = ("#1b5fa8", "#d1701c", "#2b8a5a", "#a83232", "#8a4fa3", "#222222")
_MARKERS = "os^vDP"


def write_growth_plots(results: Sequence[BenchmarkResult], folder: Path) -> list[Path]:
    """Draw one picture for each benchmark and axis, `NAME_by_AXIS.png`, each atomically.

    Args:
        results: Those without growth are passed over.
        folder: Where the files go; made if it is not there.

    Returns:
        The paths written.
    """
    paths = []
    for result in results:
        for axis in dict.fromkeys(one.axis for one in result.growth):
            lines = [one for one in result.growth if one.axis == axis]
            slug = re.sub(r"[^a-z0-9]+", "_", axis.lower()).strip("_")
            paths.append(folder / f"{result.name}_by_{slug}.png")
            with atomic_file(paths[-1]) as temporary:
                _figure(result, axis, lines).savefig(temporary, format="png", dpi=150)
    return paths


def _figure(result: BenchmarkResult, axis: str, lines: Sequence[Growth]) -> Figure:
    figure, axes = new_figure(f"{result.name} by {axis}", result.about)
    for place, line in enumerate(lines):
        color, marker = _COLORS[place % len(_COLORS)], _MARKERS[place % len(_MARKERS)]
        style = {"color": color, "markersize": 5, "markerfacecolor": "none"}
        _draw(axes, line, line.seconds, label=line.name, linestyle="-", marker=marker, **style)
        if line.floor_seconds is not None:
            label = f"{line.name}: floor"
            _draw(axes, line, line.floor_seconds, label=label, linestyle=":", **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(f"{axis[:1].upper()}{axis[1:]} (log scale)")
    axes.set_ylabel("Milliseconds a call (log scale)")
    _plain_numbers(axes)
    handles, _ = axes.get_legend_handles_labels()
    figure.legend(handles=handles, frameon=False, loc="outside lower center", ncols=2, fontsize=9.5)
    return figure


def _draw(axes: Axes, line: Growth, seconds: Sequence[float], **style: object) -> None:
    axes.plot(list(line.sizes), [1e3 * value for value in seconds], **style)  # type: ignore[arg-type]


def _plain_numbers(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for one in (axes.xaxis, axes.yaxis):
        one.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
        one.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        one.set_minor_formatter(NullFormatter())
