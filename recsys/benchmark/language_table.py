"""The next-word experiment as a table for a terminal."""

import math
import sys
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from recsys.benchmark.language_labels import label_of
from recsys.benchmark.language_result import CLOSE, EpochRecord, EstimatorRun, LanguageResult

_COLUMNS = ("epoch", "seconds", "validation", "test", "to full", "sample", "ESS", "fell back")
_NOTHING = "-"


def print_language(result: LanguageResult) -> None:
    """Print the table; a pipe gets lines that are wide enough for it."""
    width = None if sys.stdout.isatty() else 120
    Console(width=width).print(language_table(result))


def language_table(result: LanguageResult) -> Table:
    """Lay the result out for rich: a row an estimator, in it a line an epoch."""
    table = Table(
        title=_title(result.facts),
        title_justify="left",
        title_style="bold",
        caption=_caption(result),
        caption_justify="left",
        show_lines=True,
    )
    table.add_column("estimator")
    for heading in _COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True)
    for run in result.runs:
        lines = [_cells(result, epoch, record) for epoch, record in enumerate(run.epochs)]
        columns = ("\n".join(cells) for cells in zip(*lines, strict=True))
        table.add_row(_verdict(result, run), *columns)
    return table


def _verdict(result: LanguageResult, run: EstimatorRun) -> str:
    """Give the name, and below it what the run comes to."""
    lines = [f"[bold]{label_of(run.name)}[/bold]"]
    if run is result.reference:
        return lines[0]
    speed_up, to_equal = result.speed_up(run), result.epochs_to_equal(run)
    if speed_up is not None:
        lines.append(f"{speed_up:,.1f} times as fast")
    if to_equal is not None:
        lines.append(f"equal after {to_equal} {'epoch' if to_equal == 1 else 'epochs'}")
    return "\n".join(lines)


def _cells(result: LanguageResult, epoch: int, record: EpochRecord) -> tuple[str, ...]:
    """Give the line of one epoch, counted from 0."""
    reference = None if result.reference is None else result.reference.epochs
    to_full = _NOTHING
    if reference is not None and epoch < len(reference) and not record.diverged:
        ratio = record.test_perplexity / reference[epoch].test_perplexity
        to_full = f"{ratio - 1:+.1%}"
    return (
        str(epoch + 1),
        f"{record.seconds:,.1f}",
        _perplexity(record.validation_perplexity),
        _perplexity(record.test_perplexity),
        to_full,
        _drawn(record, "sample_size", ",.0f"),
        _drawn(record, "effective_sample_size", ",.0f"),
        _drawn(record, "full_softmax_share", ".1%"),
    )


def _perplexity(value: float) -> str:
    if not math.isfinite(value):
        return "diverged"
    return f"{value:,.1f}" if value < 100_000 else f"{value:.1e}"


def _drawn(record: EpochRecord, name: str, form: str) -> str:
    return format(record.statistics[name], form) if name in record.statistics else _NOTHING


def _title(facts: Mapping[str, int]) -> str:
    return (
        f"Next-word prediction over {facts['num_rows']:,} words: perplexity after each epoch of "
        f"{facts['train_examples']:,} examples"
    )


def _caption(result: LanguageResult) -> str:
    facts = result.facts
    return (
        "seconds: of training alone. to full: test perplexity against the full softmax's of that "
        "epoch. sample: mean draws. ESS: mean effective sample size. fell back: share of rows that "
        "took the full softmax. times as fast: medians over the epochs. equal after: test "
        f"perplexity within {CLOSE - 1:.0%} of the full softmax's last. Unigram model: "
        f"{result.unigram_perplexity:,.1f} on test. Scored: "
        f"{facts['validation_examples_scored']:,} words of validation, "
        f"{facts['test_examples_scored']:,} of test, of which "
        f"{facts['test_examples_of_unseen_words']:,} are never a target in training; "
        f"{facts['num_rare_words']:,} of {facts['num_words']:,} different words share a row."
    )
