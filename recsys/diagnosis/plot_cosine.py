"""Cosine between a step's gradient and the full softmax's, over the sample size, by family."""

from __future__ import annotations  # the types of matplotlib, which is loaded where it draws

from typing import TYPE_CHECKING

from recsys.diagnosis.canvas import (
    COLORS,
    FAINT,
    INK,
    label_ends,
    log_sizes,
    new_sheet,
    untrained_line,
)
from recsys.diagnosis.kind import FAMILIES
from recsys.diagnosis.measurement import Measurement, StepError
from recsys.diagnosis.registry import KINDS
from recsys.diagnosis.result import Diagnosis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_COLUMNS = 3
Steps = list[tuple[Measurement, StepError]]


def plot_cosine(diagnosis: Diagnosis) -> Figure:
    """Draw how well the direction of one training step agrees with the full softmax's."""
    families = _families(diagnosis)
    about = diagnosis.about
    columns = min(max(len(families), 1), _MOST_COLUMNS)
    rows = max(-(-len(families) // columns), 1)
    figure, axes = new_sheet(
        rows,
        columns,
        size=(14, 1.9 + 2.9 * rows),
        title=_title(families),
        subtitle=(
            "Cosine between the estimated gradient and the full softmax's, over all user and item "
            f"vectors of a batch of {about['batch_size']:,} training rows; "
            "1 = the same direction, 0 = none of it, below 0 = away from it.\n"
            f"Mean of {about['num_batches']:,} batches with one draw each; whiskers: "
            f"{diagnosis.level:.0%} intervals over the batches. Sample size: candidates drawn; "
            "mixed: drawn beside the batch's own; adaptive: effective size asked for.\n"
            "* † ‡: aims at another optimum than the softmax." + untrained_line(about)
        ),
    )
    sizes = sorted({one.sample_size for lines in families.values() for s in lines for one, _ in s})
    for one, (family, lines) in zip(axes, families.items(), strict=False):
        _panel(one, family, lines)
    if families:
        log_sizes(axes[0], sizes)
        axes[0].set_xlim(sizes[0] / 1.3, sizes[-1] * (sizes[-1] / sizes[0]) ** 0.62 * 1.3)
        low = min(step.cosine.value for lines in families.values() for s in lines for _, step in s)
        for one in axes:
            one.set_ylim(min(low, 0) - 0.13, 1.07)
    for unused in axes[len(families) :]:
        unused.set_visible(False)
    for place in range(len(families)):
        last_of_column = place + columns >= len(families)
        axes[place].tick_params(labelbottom=last_of_column, labelleft=place % columns == 0)
        if last_of_column:
            axes[place].set_xlabel("Sample size", fontsize=9)
    figure.supylabel("Cosine to the full softmax's gradient", fontsize=9.5, color=INK)
    return figure


def _families(diagnosis: Diagnosis) -> dict[str, list[Steps]]:
    """Group the estimators that draw: family -> the steps of each, sample sizes rising."""
    found: dict[str, list[Steps]] = {family: [] for family in FAMILIES}
    for name, group in diagnosis.by_estimator().items():
        steps = [(one, one.step) for one in group if one.step is not None]
        if steps and KINDS[name].draws:
            found[KINDS[name].family].append(steps)
    return {family: lines for family, lines in found.items() if lines}


def _title(families: dict[str, list[Steps]]) -> str:
    cosines = [step.cosine.value for lines in families.values() for s in lines for _, step in s]
    ends = f": cosines from {min(cosines):.2f} to {max(cosines):.2f}" if cosines else ""
    return f"How far one training step points where the full softmax would, by sample size{ends}"


def _panel(axes: Axes, family: str, lines: list[Steps]) -> None:
    ends = []
    for steps, color in zip(lines, COLORS, strict=False):
        sizes = [one.sample_size for one, _ in steps]
        cosines = [step.cosine for _, step in steps]
        values = [cosine.value for cosine in cosines]
        axes.plot(sizes, values, "o-", ms=4, color=color, linewidth=1.6)
        for size, cosine in zip(sizes, cosines, strict=True):
            if cosine.low is not None and cosine.high is not None:
                axes.plot([size, size], [cosine.low, cosine.high], color=color, linewidth=1)
        ends.append((sizes[-1], values[-1], KINDS[steps[0][0].estimator].marked_label, color))
    label_ends(axes, ends, gap=0.085)
    first = min(one.sample_size for steps in lines for one, _ in steps)
    last = max(one.sample_size for steps in lines for one, _ in steps)
    axes.plot([first, last], [1, 1], color=FAINT, linewidth=0.8, linestyle=":")
    axes.set_title(family, fontsize=10, color=INK, loc="left")
