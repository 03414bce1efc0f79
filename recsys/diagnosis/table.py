"""A diagnosis as tables for a terminal."""

import sys

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from recsys.diagnosis.kind import AIMS
from recsys.diagnosis.measurement import Measurement, StepError
from recsys.diagnosis.registry import KINDS
from recsys.diagnosis.result import Diagnosis
from recsys.evaluation import Estimate

_ROWS_CAPTION = (
    "bias: ||mean estimate - full|| / ||full|| of the gradient; noise: root mean square of one "
    "draw's error, likewise; noise band: what the bias reads where there is none. "
    "loss - full: in nats; ESS: effective sample size; hits: candidates that are the row's "
    "positive."
)
_STEPS_CAPTION = (
    "error: ||estimate - full|| / ||full|| of the gradient of all user and item vectors, bias and "
    "noise together; step: median time to draw, and of the loss forward and backward, without the "
    "towers; draw: of that the draws."
)

_FACTS = {
    "full_softmax_share": "rows that took the full softmax, their sample not being worth enough:",
    "acceptance_rate": "proposals that were accepted:",
}


def print_diagnosis(diagnosis: Diagnosis) -> None:
    """Print the tables and the advice; a pipe gets lines that are wide enough for them."""
    width = None if sys.stdout.isatty() else 150
    Console(width=width).print(diagnosis_table(diagnosis))


def diagnosis_table(diagnosis: Diagnosis) -> RenderableType:
    """Lay a diagnosis out for rich: the rows, a training step, what to mind, the advice."""
    parts: list[RenderableType] = [_rows_table(diagnosis)]
    parts += [Text(line) for line in _facts(diagnosis)]
    parts.append(_steps_table(diagnosis))
    aims = dict.fromkeys(KINDS[name].aim for name in diagnosis.by_estimator())
    parts += [Text(f"{AIMS[aim][0]} {AIMS[aim][1]}.") for aim in aims if AIMS[aim][0]]
    parts += [Text(f"{name} is left out: {why}.") for name, why in diagnosis.skipped.items()]
    spread = diagnosis.about["batch_spread"]
    if spread is not None:
        parts.append(
            Text(
                f"For comparison: from batch to batch the full softmax's own gradient of the item "
                f"vectors varies by {spread:.2f} times its norm."
            )
        )
    parts += [Text(f"Note: {note}", style="yellow") for note in _notes(diagnosis)]
    parts.append(Text(diagnosis.advice.sentence, style="bold"))
    return Group(*parts)


def _facts(diagnosis: Diagnosis) -> list[str]:
    """Say what the draws told, a line for each estimator that tells something."""
    lines = []
    for name, group in diagnosis.by_estimator().items():
        for fact, words in _FACTS.items():
            told = [
                f"{one.facts[fact]:.0%} at {one.sample_size:,}"
                for one in group
                if fact in one.facts
            ]
            if told:
                lines.append(f"{KINDS[name].label}: {words} {', '.join(told)}.")
    return lines


def _notes(diagnosis: Diagnosis) -> list[str]:
    about = diagnosis.about
    notes = []
    if about.get("bundle") is None:
        notes.append("bundle=null: a fresh model that has not been trained; its scores are chance.")
    wanted, got = about["num_positives_wanted"], about["num_positives"]
    if got < wanted:
        notes.append(f"the validation part has {got:,} positives to measure on, not {wanted:,}.")
    left_out = about["num_positives_without_training_events"]
    if left_out:
        notes.append(f"{left_out:,} validation positives without training events are left out.")
    return notes


def _rows_table(diagnosis: Diagnosis) -> Table:
    about = diagnosis.about
    table = _table(
        f"Gradient of the scores against the full softmax: {about['num_positives']:,} validation "
        f"positives, {about['num_draws']:,} draws, {about['num_items']:,} items "
        f"[{diagnosis.level:.0%} interval]",
        _ROWS_CAPTION,
    )
    headings = ("size", "candi-\ndates", "bias", "noise\nband", "noise", "bias, user\nvectors")
    for heading in (*headings, "bias, item\nvectors", "loss -\nfull", "ESS", "hits"):
        table.add_column(heading, justify="right", no_wrap=True)
    for group in diagnosis.by_estimator().values():
        for place, one in enumerate(group):
            table.add_row(*_head(place, one), *_row_cells(one), end_section=one is group[-1])
    return table


def _row_cells(one: Measurement) -> list[str]:
    scores = one.gradients["scores"]
    size = one.effective_sample_size
    return [
        f"{one.candidates:,.0f}",
        _interval(scores.bias),
        _number(scores.noise_band),
        _number(scores.noise.value),
        _number(one.gradients["query_vectors"].bias.value),
        _number(one.gradients["item_vectors"].bias.value),
        "" if one.loss_bias is None else f"{round(one.loss_bias.value, 2) + 0.0:+.2f}",
        "" if size is None else f"{size:,.1f}",
        f"{one.hits:.2%}",
    ]


def _steps_table(diagnosis: Diagnosis) -> Table:
    about = diagnosis.about
    table = _table(
        f"One step at a batch of {about['batch_size']:,} training rows, {about['num_batches']:,} "
        f"batches [{diagnosis.level:.0%} interval]",
        _STEPS_CAPTION,
    )
    headings = ("size", "error", "user\nvectors", "item\nvectors", "cosine to full", "draw", "step")
    for heading in (*headings, "times\nfull"):
        table.add_column(heading, justify="right", no_wrap=True)
    steps = [one.step for one in diagnosis.measurements if one.estimator == "full_softmax"]
    full = steps[0] if steps else None
    for group in diagnosis.by_estimator().values():
        taken = [one for one in group if one.step is not None]
        for place, one in enumerate(taken):
            cells = [] if one.step is None else _step_cells(one.step, full)
            table.add_row(*_head(place, one), *cells, end_section=one is taken[-1])
    return table


def _step_cells(step: StepError, full: StepError | None) -> list[str]:
    return [
        _interval(step.error),
        _number(step.query_error.value),
        _number(step.item_error.value),
        _interval(step.cosine),
        f"{1000 * step.draw_seconds:.1f} ms",
        f"{1000 * step.seconds:.1f} ms",
        "" if full is None else f"{step.seconds / full.seconds:.2f}",
    ]


def _table(title: str, caption: str) -> Table:
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        caption=caption,
        caption_justify="left",
    )
    table.add_column("estimator", no_wrap=True)
    return table


def _head(place: int, one: Measurement) -> tuple[str, str]:
    """Name the estimator in the first of its lines."""
    name = "" if place else KINDS[one.estimator].marked_label
    return name, f"{one.sample_size:,}"


def _interval(estimate: Estimate) -> str:
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return _number(estimate.value)
    return f"{_number(estimate.value)} [{_number(low)}, {_number(high)}]"


def _number(value: float) -> str:
    """Write three decimals, fewer where the number is large."""
    size = abs(value)
    return f"{value:.3f}" if size < 10 else f"{value:.1f}" if size < 100 else f"{value:,.0f}"
