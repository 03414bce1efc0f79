"""The numbers that describe a prepared data set, and the short text that shows them."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.data.coded_log import PARTS, CodedLog
from recsys.data.moments import format_moment


def measure_log(
    log: CodedLog, clock: str, item_counts: NDArray[np.int64], num_pairs: int
) -> dict[str, Any]:
    """Measure density, time range and popularity skew.

    Args:
        log: After the filters.
        clock: "time", "order" or "none".
        item_counts: [candidates], training events.
        num_pairs: Distinct pairs of user and item.

    Returns:
        `density`: distinct pairs / (users x items), of the log; `first_time` and `last_time` with
        a clock; `gini` of the candidates' training counts (0: all equal, near 1: a few have all),
        `top_1_percent_share` and `top_10_percent_share`: of the training events, those of the
        most frequent candidates (at least one).
    """
    facts: dict[str, Any] = {"density": num_pairs / (log.num_users * log.num_items)}
    if clock == "time" and log.time_range is not None:
        facts["first_time"], facts["last_time"] = map(format_moment, log.time_range)
    rising = np.sort(item_counts).astype(np.float64)
    total, places = rising.sum(), np.arange(1, len(rising) + 1)
    facts["gini"] = float((2 * places - len(rising) - 1) @ rising / (len(rising) * total))
    for percent in (1, 10):
        num_top = max(round(len(rising) * percent / 100), 1)
        facts[f"top_{percent}_percent_share"] = float(rising[-num_top:].sum() / total)
    return facts


def find_warnings(manifest: Mapping[str, Any]) -> list[str]:
    """Name what the user should know before trusting a result on this data set."""
    warnings = []
    rule, leakage, counts = manifest["split"]["rule"], manifest["leakage"], manifest["counts"]
    for part in ("validation", "test"):
        if not leakage[part]["rows"]:
            warnings.append(f"The {part} part is empty.")
        repeated = leakage[part]["pairs_in_train"]
        if repeated and manifest["exclude_seen"]:
            warnings.append(
                f"{repeated} {part} pairs stand in train too: with seen items excluded they can "
                "never be hit. Make pairs unique (duplicates=keep_first) or set exclude_seen=false."
            )
    later = leakage.get("train_rows_at_or_after_cut", 0)
    if later:
        warnings.append(
            f"{later} training rows are at or after the first held-out moment "
            f"({format_moment(leakage['cut'])}): with the split {rule}, later events of some users "
            "inform earlier events of others. The split temporal avoids this."
        )
    if rule == "leave_last_out" and manifest["clock"] == "none":
        warnings.append("The log has no timestamp: leave_last_out took the order of its rows.")
    for name, examples in manifest["absent_from_the_table"].items():
        if examples:
            count = counts[f"{name}_absent_from_the_table"]
            listed = ", ".join(map(repr, examples)) + (", ..." if count > len(examples) else "")
            warnings.append(
                f"{name.capitalize()} of the log absent from their table: {count:,} ({listed})."
            )
    return warnings


def summarise(manifest: Mapping[str, Any]) -> list[str]:
    """Give the summary of a data set as lines."""
    return [
        *_describe_rows(manifest),
        *_describe_size(manifest),
        *_describe_parts(manifest),
        *(f"Warning: {warning}" for warning in manifest["warnings"]),
    ]


def _describe_rows(manifest: Mapping[str, Any]) -> Iterator[str]:
    yield f"Interactions read: {manifest['rows_read']:,}"
    for table, reasons in manifest["dropped"].items():
        for reason, rows in reasons.items():
            if rows:
                yield f"  dropped from {table}: {rows:,} ({reason})"
    for report in manifest["filters"]:
        note = ""
        if report["name"] == "duplicates":
            note = (
                f"; {report['repeated_rows']:,} rows repeat a user-item pair, "
                f"{report['exact_repeats']:,} of them with the same time"
            )
        yield (
            f"  after {report['name']} ({report['rule']}): {report['rows']:,} rows, "
            f"{report['users']:,} users, {report['items']:,} items "
            f"({report['removed_rows']:,} rows removed{note})"
        )


def _describe_size(manifest: Mapping[str, Any]) -> Iterator[str]:
    facts, counts = manifest["statistics"], manifest["counts"]
    yield (
        f"Users with training events: {counts['users']:,}; candidate items: {counts['items']:,}; "
        f"density {facts['density']:.3%}"
    )
    for key, words in (
        ("items_of_the_table_without_events", "items of the table without training events"),
        ("items_of_the_table_left_out", "items of the table left out: neither events nor features"),
        ("users_of_the_table_without_events", "users of the table without training events"),
        ("users_of_the_table_left_out", "users of the table left out: neither events nor features"),
    ):
        if counts[key]:
            yield f"  {words}: {counts[key]:,}"
    if "first_time" in facts:
        yield f"Time: {facts['first_time']} to {facts['last_time']}"
    yield (
        f"Popularity in training: the top 1 % of the items have {facts['top_1_percent_share']:.1%} "
        f"of the events, the top 10 % {facts['top_10_percent_share']:.1%}; Gini {facts['gini']:.2f}"
    )


def _describe_parts(manifest: Mapping[str, Any]) -> Iterator[str]:
    counts, leakage = manifest["counts"], manifest["leakage"]
    cuts = [
        f"{name} {value}"
        for name, value in manifest["split"].items()
        if name != "rule" and value is not None
    ]
    parts = [f"{name} {counts[name]:,}" for name in PARTS if name in counts]
    yield f"Split {manifest['split']['rule']}{_bracket(cuts)}: {', '.join(parts)}"
    if "train_rows_at_or_after_cut" in leakage:
        yield (
            f"  training rows at or after {format_moment(leakage['cut'])}: "
            f"{leakage['train_rows_at_or_after_cut']:,}"
        )
    for part in ("validation", "test"):
        facts = leakage[part]
        if facts["rows"]:
            yield (
                f"  {part}: {facts['pairs_in_train']:,} pairs stand in train; unseen in train: "
                f"{facts['items_unseen_in_train']:,} items "
                f"({facts['rows_of_items_unseen_in_train']:,} rows), "
                f"{facts['users_unseen_in_train']:,} users "
                f"({facts['rows_of_users_unseen_in_train']:,} rows)"
            )


def _bracket(words: list[str]) -> str:
    return f" ({', '.join(words)})" if words else ""
