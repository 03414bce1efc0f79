"""The report as pictures."""

from __future__ import annotations  # the types of matplotlib, which is loaded where it draws

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recsys.evaluation.dial_plot import dial_plot
from recsys.evaluation.estimates import Estimate
from recsys.evaluation.figures import INK, MODEL, new_figure, with_legend
from recsys.evaluation.report import Report
from recsys.evaluation.slices import Slice
from recsys.evaluation.training_curves import training_curves
from recsys.foundations import atomic_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BASELINE, _INDEX = "#d1701c", "#2b8a5a"


def write_plots(
    report: Report, folder: Path, history: Sequence[Mapping[str, float]] = ()
) -> list[Path]:
    """Write every picture that the report has the numbers for, each atomically.

    `recall_at_k.png` (exact, through the index, popularity; with intervals),
    `recall_by_popularity_decile.png`, `recall_by_user_activity.png`, `popularity_dial.png` (recall
    against coverage), and with a history `training_curves.png`.

    Args:
        report: The report.
        folder: Where the PNG files go; made if it is not there.
        history: One mapping an epoch, as training records them: `epoch`, `train_loss`, and where
            there is a validation part `validation_recall_at_<k>` and `validation_log_likelihood`.

    Returns:
        The paths written.
    """
    figures = {"recall_at_k.png": _recall_curve(report)}
    for name, file in (
        ("item_popularity_decile", "recall_by_popularity_decile.png"),
        ("user_activity", "recall_by_user_activity.png"),
    ):
        if report.slices.get(name):
            figures[file] = _slice_bars(report, name)
    if report.popularity_dial:
        figures["popularity_dial.png"] = dial_plot(
            report.popularity_dial,
            report.slice_k,
            where=f"{report.about.get('part')} part",
            level=report.level,
        )
    if history:
        figures["training_curves.png"] = training_curves(history)
    paths = []
    for name, figure in figures.items():
        with atomic_file(folder / name) as temporary:
            figure.savefig(temporary, format="png", dpi=150)
        paths.append(folder / name)
    return paths


def _recall_curve(report: Report) -> Figure:
    """Draw recall over k with interval bands."""
    part, k = report.about.get("part"), report.slice_k
    recall = report.metrics[f"recall_at_{k}"].value
    title = f"Recall@{k} is {recall:.3f}"
    if report.popularity:
        title += f"; recommending popular items reaches {_value(report.popularity, k):.3f}"
    where = f"{part} part, whole catalogue" if part else "lists given"
    bands = f"bands: {report.level:.0%} bootstrap intervals"
    users = f"{report.counts['num_users']:,} users"
    figure, axes = new_figure(title, f"Mean over {users}, {where}; {bands}")
    label = "Model, exact search" if report.popularity else "Lists"
    _curve(axes, report.ks, report.metrics, label=label, color=MODEL, style="o-")
    if report.through_index:
        _curve(
            axes,
            report.ks,
            report.through_index,
            label="Model, through the index",
            color=_INDEX,
            style="s--",
        )
    if report.popularity:
        _curve(axes, report.ks, report.popularity, label="Popularity", color=_BASELINE, style="^-")
    axes.set_xscale("log")
    axes.set_xticks(report.ks, [str(k) for k in report.ks])
    axes.minorticks_off()
    axes.set_xlabel("k: items recommended to each user (log scale)")
    axes.set_ylabel("Recall@k: share of a user's chosen items found")
    axes.set_ylim(bottom=0)
    return with_legend(figure, axes)


def _value(estimates: Mapping[str, Estimate], k: int) -> float:
    return estimates[f"recall_at_{k}"].value


def _curve(
    axes: Axes,
    ks: Sequence[int],
    estimates: Mapping[str, Estimate],
    *,
    label: str,
    color: str,
    style: str,
) -> None:
    points = [estimates[f"recall_at_{k}"] for k in ks]
    axes.plot(ks, [point.value for point in points], style, color=color, label=label, ms=5)
    low, high = ([getattr(point, end) for point in points] for end in ("low", "high"))
    axes.fill_between(ks, low, high, color=color, alpha=0.15, linewidth=0)


def _slice_bars(report: Report, name: str) -> Figure:
    """Draw recall by slice, model beside popularity, with interval whiskers."""
    slices, k = report.slices[name], report.slice_k
    by_item = name == "item_popularity_decile"
    title = _decile_title(slices, k) if by_item else _activity_title(slices, k)
    subtitle = (
        f"Recall@{k} by {'popularity of the chosen item' if by_item else 'length of the history'}, "
        f"{report.about.get('part')} part; whiskers: {report.level:.0%} bootstrap intervals"
    )
    figure, axes = new_figure(title, subtitle)
    for place, (system, label, color) in enumerate(
        (("model", "Model, exact search", MODEL), ("popularity", "Popularity", _BASELINE))
    ):
        _bars(axes, slices, system, label=label, color=color, shift=0.4 * place - 0.2)
    axes.set_xticks(range(len(slices)), [_tick(one, by_item) for one in slices], fontsize=8.5)
    axes.set_xlabel(
        "Item popularity decile, 1 = least popular; (training events of an item); n = chosen items"
        if by_item
        else "Events in the user's history; n = users"
    )
    axes.set_ylabel(f"Recall@{k}: share of chosen items found")
    axes.set_ylim(bottom=0)
    return with_legend(figure, axes)


def _decile_title(slices: Sequence[Slice], k: int) -> str:
    """Say what is found of items other than the most popular tenth."""
    rest = [one for one in slices if one.name != "10" and one.recall]
    total = sum(one.num_positives for one in rest)
    if not total:
        return f"Recall@{k} by popularity of the item"
    model, popular = (
        sum(one.recall[system].value * one.num_positives for one in rest) / total
        for system in ("model", "popularity")
    )
    return f"Deciles 1 to 9: recall@{k} {model:.3f}, popularity {popular:.3f}"


def _activity_title(slices: Sequence[Slice], k: int) -> str:
    """Name the recall of the shortest and the longest histories."""
    ends = [f"{one.name} events {one.recall['model'].value:.3f}" for one in (slices[0], slices[-1])]
    return f"Recall@{k} by history: {', '.join(dict.fromkeys(ends))}"


def _bars(
    axes: Axes, slices: Sequence[Slice], system: str, *, label: str, color: str, shift: float
) -> None:
    there = [(x, one.recall[system]) for x, one in enumerate(slices) if system in one.recall]
    x = np.array([place for place, _ in there], float) + shift
    values = np.array([estimate.value for _, estimate in there])
    low = np.array([estimate.low for _, estimate in there])
    high = np.array([estimate.high for _, estimate in there])
    whiskers = np.abs(np.stack([values - low, high - values]))
    axes.bar(x, values, width=0.38, color=color, label=label)
    axes.errorbar(x, values, yerr=whiskers, fmt="none", ecolor=INK, elinewidth=1, capsize=2.5)


def _tick(one: Slice, by_item: bool) -> str:
    if not by_item or one.bounds is None:
        return f"{one.name}\nn = {one.num_users:,}"
    low, high = one.bounds
    events = f"{low:,}" if low == high else f"{low:,}-{high:,}"
    return f"{one.name}\n({events})\nn = {one.num_positives:,}"
