"""Growth as pictures: seconds of a call over a size, both logarithmic, with the floor."""

from __future__ import annotations  # the types of matplotlib, which is loaded where it draws

import math
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recsys.benchmark.growth import Growth, grouped
from recsys.benchmark.result import BenchmarkResult
from recsys.evaluation import new_panels
from recsys.foundations import atomic_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLORS = ("#1b5fa8", "#d1701c", "#2b8a5a", "#a83232", "#8a4fa3", "#222222")
_MARKERS = "os^vDP"
_FAINT = "#8a8a8a"
_AXES_INCHES, _LABEL_INCHES, _COLUMNS = 4.5, 0.22, 2  # of the legend below the axes
_LINE = 100  # characters


def write_growth_plots(results: Sequence[BenchmarkResult], folder: Path) -> list[Path]:
    """Draw one picture for each benchmark, group of lines and axis, each atomically.

    They are named `NAME_by_AXIS.png`, or `NAME_GROUP_by_AXIS.png`.

    Args:
        results: Those without growth are passed over, and sizes that have one value alone.
        folder: Where the files go; made if it is not there.

    Returns:
        The paths written.
    """
    paths = []
    for result in results:
        for what, lines in grouped(result.growth).items():
            if all(len(line.sizes) < 2 for line in lines):
                continue
            slug = re.sub(r"[^a-z0-9]+", "_", f"{result.name} {what}".lower()).strip("_")
            paths.append(folder / f"{slug}.png")
            with atomic_file(paths[-1]) as temporary:
                _figure(f"{result.name} {what}", result, lines).savefig(
                    temporary, format="png", dpi=150
                )
    return paths


def _figure(title: str, result: BenchmarkResult, lines: Sequence[Growth]) -> Figure:
    shared = _shared_floor(lines)
    floors = 1 if shared else sum(line.floor_seconds is not None for line in lines)
    height = _AXES_INCHES + _LABEL_INCHES * math.ceil((len(lines) + floors) / _COLUMNS)
    about = textwrap.wrap(f"{result.about[:1].upper()}{result.about[1:]}", _LINE)
    title += "\n" * (len(about) - 1)  # room for as many lines above the axes
    figure, [axes] = new_panels(title, "\n".join(about), heights=(height,))
    if shared is not None:
        _draw(
            axes,
            shared,
            shared.floor_seconds or (),
            label="floor",
            linestyle=":",
            color=_FAINT,
            zorder=3,
        )
    for place, line in enumerate(lines):
        color = _COLORS[place % len(_COLORS)]
        marker = _MARKERS[(place + place // len(_COLORS)) % len(_MARKERS)]
        style = {"color": color, "markersize": 5, "markerfacecolor": "none"}
        _draw(axes, line, line.seconds, label=line.name, linestyle="-", marker=marker, **style)
        if line.floor_seconds is not None and shared is None:
            label = f"{line.name}: floor"
            _draw(axes, line, line.floor_seconds, label=label, linestyle=":", **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axis = lines[0].axis
    axes.set_xlabel(f"{axis[:1].upper()}{axis[1:]} (log scale)")
    axes.set_ylabel("Milliseconds a call (log scale)")
    _plain_numbers(axes, sorted({size for line in lines for size in line.sizes}))
    handles, _ = axes.get_legend_handles_labels()
    figure.legend(
        handles=handles, frameon=False, loc="outside lower center", ncols=_COLUMNS, fontsize=9.5
    )
    return figure


def _draw(axes: Axes, line: Growth, seconds: Sequence[float], **style: object) -> None:
    axes.plot(list(line.sizes), [1e3 * value for value in seconds], **style)  # type: ignore[arg-type]


def _shared_floor(lines: Sequence[Growth]) -> Growth | None:
    """Give a line whose floor is that of all others that have one; None if there is none."""
    known = [line for line in lines if line.floor_seconds is not None]
    same = len({(tuple(line.sizes), tuple(line.floor_seconds or ())) for line in known}) == 1
    return known[0] if same else None


def _plain_numbers(axes: Axes, sizes: Sequence[int]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    for one in (axes.xaxis, axes.yaxis):
        one.set_minor_formatter(NullFormatter())
