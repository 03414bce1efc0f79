"""Bias against sample size, a small picture for each estimator."""

from __future__ import annotations  # the types of matplotlib, which is loaded where it draws

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from recsys.diagnosis.canvas import (
    BAND,
    COLORS,
    INK,
    log_errors,
    log_sizes,
    new_sheet,
    untrained_line,
)
from recsys.diagnosis.measurement import Measurement
from recsys.diagnosis.registry import KINDS
from recsys.diagnosis.result import Diagnosis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_COLUMNS = 5
_BIAS, _NOISE = COLORS[0], COLORS[1]
_ZERO = 1e-5  # what is below is rounding


def plot_bias(diagnosis: Diagnosis) -> Figure:
    """Draw bias, noise and noise band of the gradient of the scores over the sample size."""
    groups = {name: group for name, group in diagnosis.by_estimator().items() if KINDS[name].draws}
    about = diagnosis.about
    columns = min(max(len(groups), 1), _MOST_COLUMNS)
    rows = max(-(-len(groups) // columns), 1)
    figure, axes = new_sheet(
        rows,
        columns,
        size=(14, 1.9 + max(2.3 * rows, 3.2)),
        title=_title(list(groups.values())),
        subtitle=(
            "Blue: bias, the distance of the mean estimate from the full softmax's gradient of "
            "the scores; 1 = as long as that gradient; whiskers: "
            f"{diagnosis.level:.0%} intervals over {about['num_positives']:,} positives.\n"
            f"Grey: noise band, up to what noise alone leaves in a mean of {about['num_draws']:,} "
            "draws; a hollow point is below twice that and says nothing of a bias.\n"
            "Orange: noise, the error of one draw (root mean square). "
            "* † ‡: aims at another optimum than the softmax; † and ‡ share a scale of their own."
            + untrained_line(about)
        ),
    )
    for one, (name, group) in zip(axes, groups.items(), strict=False):
        _panel(one, KINDS[name].marked_label, group)
    _scale(axes, groups, columns)
    if groups:
        _name_lines(axes[0], next(iter(groups.values())))
    for place, one in enumerate(axes):
        one.set_visible(place < len(groups))
        last_of_column = place + columns >= len(groups)
        one.tick_params(labelbottom=last_of_column)
        if last_of_column:
            one.set_xlabel("Sample size", fontsize=9)
    figure.supylabel("Error / norm of the gradient (log scale)", fontsize=9.5)
    return figure


def _title(groups: list[list[Measurement]]) -> str:
    largest = [group[-1].gradients["scores"] for group in groups]
    clear = sum(one.is_bias_clear for one in largest)
    return (
        f"Bias against sample size: at the largest size {clear} of {len(largest)} estimators "
        "differ from the full softmax by more than noise"
    )


def _scale(axes: Sequence[Axes], groups: Mapping[str, list[Measurement]], columns: int) -> None:
    """Give one scale to what aims at the softmax, and another to what does not."""
    if not groups:
        return
    log_sizes(axes[0], sorted({one.sample_size for group in groups.values() for one in group}))
    for aims in (("softmax", "uncorrected"), ("classification", "other")):
        places = [i for i, name in enumerate(groups) if KINDS[name].aim in aims]
        values = [v for i in places for v in _values(list(groups.values())[i])]
        low, high = (min(values) / 1.6, max(values) * 1.6) if values else (0.1, 1.0)
        for i in places:
            log_errors(axes[i], low, high)
            is_first = i % columns == 0 or i - 1 not in places
            axes[i].tick_params(labelleft=is_first)


def _values(group: list[Measurement]) -> list[float]:
    """List what is drawn of an estimator; 0 has no place on a log scale."""
    errors = [one.gradients["scores"] for one in group]
    values = [v for e in errors for v in (e.bias.value, e.noise.value, e.noise_band)]
    return [value for value in values if value > _ZERO]


def _panel(axes: Axes, label: str, group: list[Measurement]) -> None:
    sizes = [one.sample_size for one in group]
    errors = [one.gradients["scores"] for one in group]
    axes.fill_between(sizes, [_drawn(e.noise_band) for e in errors], _ZERO, color=BAND, linewidth=0)
    axes.plot(sizes, [_drawn(e.noise.value) for e in errors], color=_NOISE, linewidth=1.2)
    axes.plot(sizes, [_drawn(e.bias.value) for e in errors], color=_BIAS, linewidth=1.6)
    for size, error in zip(sizes, errors, strict=True):
        bias = error.bias
        fill = _BIAS if error.is_bias_clear else "white"
        if bias.low is not None and bias.high is not None:
            axes.plot([size, size], [_drawn(bias.low), _drawn(bias.high)], color=_BIAS, linewidth=1)
        axes.plot([size], [_drawn(bias.value)], "o", ms=5, color=_BIAS, markerfacecolor=fill)
        if error.noise.value <= _ZERO:
            axes.annotate(
                "exact: 0",
                (size, 0),
                xycoords=("data", "axes fraction"),
                xytext=(-2, 3),
                textcoords="offset points",
                ha="right",
                fontsize=8.5,
                color=_BIAS,
            )
    axes.set_title(label, fontsize=10, color=INK, loc="left")


def _drawn(value: float) -> float:
    return max(value, _ZERO)


def _name_lines(axes: Axes, group: list[Measurement]) -> None:
    """Name the three things in the first picture."""
    one = group[len(group) // 2]
    error = one.gradients["scores"]
    for text, value, offset, color in (
        ("noise", error.noise.value, (0, 5), _NOISE),
        ("bias", error.bias.value, (-28, -12), _BIAS),
        ("noise band", error.noise_band, (-14, -24), INK),
    ):
        axes.annotate(
            text,
            (one.sample_size, value),
            xytext=offset,
            textcoords="offset points",
            fontsize=8.5,
            color=color,
        )
