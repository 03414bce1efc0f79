"""The next-word experiment as two pictures: perplexity by epoch, and by training time."""

from __future__ import annotations  # the types of matplotlib, which is loaded where it draws

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recsys.benchmark.language_labels import label_of
from recsys.benchmark.language_result import CLOSE, LanguageResult
from recsys.evaluation import new_figure
from recsys.foundations import atomic_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLORS = ("#222222", "#1b5fa8", "#d1701c", "#a83232", "#2b8a5a", "#8a4fa3", "#b8860b")
_MARKERS = "os^vDPX"
_FAINT = "#8a8a8a"


def write_language_plots(result: LanguageResult, folder: Path) -> list[Path]:
    """Write `language_by_epoch.png` and `language_by_seconds.png`, each atomically.

    Args:
        result: The experiment.
        folder: Where the files go; made if it is not there.

    Returns:
        The paths written.
    """
    figures = {
        "language_by_epoch.png": _by_epoch(result),
        "language_by_seconds.png": _by_seconds(result),
    }
    for name, figure in figures.items():
        with atomic_file(folder / name) as temporary:
            figure.savefig(temporary, format="png", dpi=150)
    return [folder / name for name in figures]


def _by_epoch(result: LanguageResult) -> Figure:
    from matplotlib.ticker import MaxNLocator

    figure, axes = new_figure("Perplexity of the test part by epoch", _subtitle(result))
    _draw(axes, result, [list(range(1, len(run.epochs) + 1)) for run in result.runs])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlabel("Epoch")
    return _finish(figure, axes, result)


def _by_seconds(result: LanguageResult) -> Figure:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    figure, axes = new_figure(_time_title(result), _subtitle(result))
    seconds = [list(itertools.accumulate(e.seconds for e in run.epochs)) for run in result.runs]
    _draw(axes, result, seconds)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("Seconds of training, scoring not counted (log scale); a mark an epoch")
    return _finish(figure, axes, result)


def _time_title(result: LanguageResult) -> str:
    """Name the fastest estimator that came as far as the full softmax, if one is faster at all."""
    close = [
        (result.speed_up(run) or 0.0, label_of(run.name))
        for run in result.runs
        if (result.perplexity_ratio(run) or math.inf) <= CLOSE
    ]
    speed_up, label = max(close, default=(0.0, ""))
    if speed_up <= 1:
        return "Perplexity of the test part by training time"
    return f"At most 5 % behind, {speed_up:,.1f} times faster an epoch: {label}"


def _subtitle(result: LanguageResult) -> str:
    facts = result.facts
    return (
        f"Exact, over {facts['num_rows']:,} words; {facts['test_examples_scored']:,} words scored; "
        f"unigram model: {result.unigram_perplexity:,.0f}; dotted: full softmax's last plus 5 %"
    )


def _draw(axes: Axes, result: LanguageResult, places: Sequence[Sequence[float]]) -> None:
    """Draw a line an estimator; hollow marks, the later ones smaller, do not hide each other."""
    _, highest = _limits(result)
    for place, (run, xs) in enumerate(zip(result.runs, places, strict=True)):
        color, marker = _COLORS[place % len(_COLORS)], _MARKERS[place % len(_MARKERS)]
        last = run.last.test_perplexity
        note = f" (ends at {last:,.0f})" if math.isfinite(last) and last > highest else ""
        note = " (diverged)" if run.last.diverged else note
        axes.plot(
            xs,
            [one.test_perplexity for one in run.epochs],  # what is not finite is not drawn
            color=color,
            marker=marker,
            markersize=10 - place,
            markerfacecolor="none",
            linewidth=1.3,
            label=label_of(run.name) + note,
        )


def _limits(result: LanguageResult) -> tuple[float, float]:
    """Give the ends of the picture: what is far worse than the best is cut off."""
    seen = [one.test_perplexity for run in result.runs for one in run.epochs]
    finite = [value for value in seen if math.isfinite(value)] or [result.unigram_perplexity]
    shown = [value for value in finite if value <= 1.6 * min(finite)]
    equal = _equal(result)
    if equal is not None and equal <= 1.6 * min(finite):
        shown.append(equal)
    margin = max(0.1 * (max(shown) - min(shown)), 0.02 * min(shown))
    return min(shown) - margin, max(shown) + margin


def _equal(result: LanguageResult) -> float | None:
    """Give the perplexity that counts as the full softmax's last."""
    if result.reference is None or result.reference.last.diverged:
        return None
    return CLOSE * result.reference.last.test_perplexity


def _finish(figure: Figure, axes: Axes, result: LanguageResult) -> Figure:
    """Add the line to compare with, the limits and the legend."""
    equal = _equal(result)
    if equal is not None:
        axes.axhline(equal, color=_FAINT, linestyle=":", linewidth=1.2)
    axes.set_ylim(*_limits(result))
    axes.set_ylabel("Perplexity of the test part")
    handles, _ = axes.get_legend_handles_labels()
    figure.legend(handles=handles, frameon=False, loc="outside lower center", ncols=2, fontsize=9.5)
    return figure
