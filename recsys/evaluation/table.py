"""The report as tables for a terminal."""

import io
from collections.abc import Mapping

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from recsys.evaluation.dial_table import dial_table
from recsys.evaluation.estimates import Estimate, format_estimate, plain_estimates
from recsys.evaluation.report import Report
from recsys.evaluation.slices import Slice
from recsys.evaluation.warm_start_table import warm_start_table

_NAMES = {
    "recall": "recall",
    "capped_recall": "capped recall",
    "precision": "precision",
    "hit_rate": "hit rate",
    "ndcg": "NDCG",
    "mrr": "MRR",
    "map": "MAP",
    "mean_popularity": "mean popularity",
    "coverage": "coverage",
    "index_recall": "index recall",
    "recall_lost": "recall lost to the index",
}
_AT_ALL = ("recall", "index_recall", "recall_lost")
_DEFINITIONS = (
    "Recall: found / all relevant; capped recall: found / min(k, relevant); precision: found / k; "
    "mean popularity: training events of what is shown; coverage: share of the catalogue shown."
)
_SLICES = {
    "item_popularity_decile": "Items by popularity, 1 least to 10 most popular (training events)",
    "item_warmth": "Relevant items",
    "user_activity": "Users by length of history",
    "user_kind": "Users",
}


def report_table(report: Report) -> RenderableType:
    """Lay the report out for rich: metrics, likelihood, slices, dial, what was left out, warnings.

    Of a model's report recall stands there at every k and the rest at one; the file has all.
    """
    parts: list[RenderableType] = [_metrics_table(report)]
    if report.likelihood:
        parts.append(Text(_likelihood_line(report)))
    parts += [_slices_table(report, name) for name in _SLICES if _tells_something(report, name)]
    if report.popularity_dial:
        parts.append(dial_table(report.popularity_dial, report.slice_k))
    if report.warm_start is not None:
        parts.append(warm_start_table(report.warm_start, report.slice_k))
    parts.append(Text(_counted(report.counts)))
    parts += [Text(f"Warning: {sentence}", style="yellow") for sentence in report.warnings]
    return Group(*parts)


def _tells_something(report: Report, name: str) -> bool:
    """Tell whether there is more than one slice, which would only repeat the mean."""
    return sum(one.num_positives > 0 for one in report.slices.get(name, ())) > 1


def report_text(report: Report, width: int = 150) -> str:
    """Give the same as plain text, for a log or a file.

    Args:
        report: The report.
        width: Characters a line.
    """
    page = io.StringIO()
    Console(file=page, width=width, no_color=True).print(report_table(report))
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines())


def _metrics_table(report: Report) -> Table:
    columns: list[tuple[str, Mapping[str, Estimate], bool]] = [("value", report.metrics, False)]
    if report.popularity:
        columns = [("model, exact", report.metrics, False)]
        columns += [("popularity", report.popularity, False)]
        columns += [("difference", report.difference, True)]
    if report.chance:
        columns.append(("chance", plain_estimates(report.chance), False))
    if report.through_index:
        columns.append(("through the index", report.through_index, False))
    title = f"{_where(report)}: mean over {report.counts['num_users']:,} users "
    table = Table(
        title=f"{title}[{report.level:.0%} interval]",
        title_justify="left",
        title_style="bold",
        caption=_DEFINITIONS,
        caption_justify="left",
    )
    table.add_column("metric")
    table.add_column("k", justify="right")
    for heading, _, _ in columns:
        table.add_column(heading, justify="right")
    for metric, label in _NAMES.items():
        keys = [(k, f"{metric}_at_{k}") for k in _shown(report, metric)]
        keys = [(k, key) for k, key in keys if any(key in values for _, values, _ in columns)]
        for place, (k, key) in enumerate(keys):
            cells = [
                format_estimate(values.get(key), signed=signed) for _, values, signed in columns
            ]
            last = place == len(keys) - 1
            table.add_row("" if place else label, str(k), *cells, end_section=last)
    return table


def _where(report: Report) -> str:
    """Say what was ranked, on which part."""
    part = report.about.get("part")
    if part is None:
        return "Lists given"
    if not report.chance:
        return f"Full catalogue, {part} part"
    ranked, items = report.counts["num_ranked_items"], report.counts["num_items"]
    return f"Cold items ({ranked:,} of {items:,}) among themselves, {part} part"


def _likelihood_line(report: Report) -> str:
    """Say how probable what was chosen is; all items alike would give their number."""
    counts, shown = report.counts, report.likelihood
    text = f"Log-likelihood {format_estimate(shown['log_likelihood'])} nats"
    if "perplexity" in shown:
        text += f", perplexity {format_estimate(shown['perplexity'])}"
    text += f": mean over {counts['num_scored_events']:,} events, softmax over "
    text += f"{counts['num_items']:,} items"
    if counts["num_unknown_events"]:
        unknown = f"{counts['num_unknown_events']:,}"
        text += f"; {unknown} events of items that are no candidates have none"
    return f"{text}."


def _shown(report: Report, metric: str) -> tuple[int, ...]:
    """Choose the k that are shown: of a model's report recalls at all, the rest at one."""
    return report.ks if metric in _AT_ALL or not report.popularity else (report.slice_k,)


def _slices_table(report: Report, name: str) -> Table:
    table = Table(title=_SLICES[name], title_justify="left", title_style="bold")
    table.add_column("slice")
    for heading in ("users", "relevant items"):
        table.add_column(heading, justify="right")
    for heading in (f"recall@{report.slice_k}, exact", "popularity"):
        table.add_column(heading, justify="right")
    for one in (some for some in report.slices[name] if some.num_positives):
        cells = [format_estimate(one.recall.get(system)) for system in ("model", "popularity")]
        table.add_row(
            _slice_label(one, name), f"{one.num_users:,}", f"{one.num_positives:,}", *cells
        )
    return table


def _slice_label(one: Slice, name: str) -> str:
    if name != "item_popularity_decile" or one.bounds is None:
        return one.name
    low, high = one.bounds
    return f"{one.name} ({low:,})" if low == high else f"{one.name} ({low:,} to {high:,})"


def _counted(counts: Mapping[str, int]) -> str:
    """Say how much was evaluated and what was left out; what did not occur is not said."""
    words = {
        "num_users": "users",
        "num_items": "items",
        "num_positives": "relevant items",
        "num_new_users": "users without training events",
        "num_fallback_users": "users of whom nothing is known, given popular items",
        "num_users_without_relevant": "users without relevant items, left out",
        "num_positives_not_ranked": "relevant items that are not ranked, left out",
        "num_users_without_list": "users without a list, counted as 0",
        "num_unknown_positives": "relevant items that are no candidates, counted as missed",
        "num_seen_positives": "relevant items that the user had already, never shown",
        "num_repeats_in_lists": "repeats in lists, counted once",
        "num_short_lists": "lists shorter than the largest k",
    }
    said = [f"{counts[name]:,} {word}" for name, word in words.items() if counts.get(name)]
    return "; ".join(said) + "."
