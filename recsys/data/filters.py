"""Filters of the log: repeated pairs, then users and items with too few interactions."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.data.coded_log import CodedLog
from recsys.foundations import ConfigError, DataError

DUPLICATES = ("auto", "keep_first", "keep_last", "keep_all", "sum_weights")


@dataclass(frozen=True, kw_only=True)
class FilterSettings:
    """What to leave out of the log.

    Attributes:
        min_user_interactions: Users with fewer rows go; at least 1.
        min_item_interactions: Items with fewer rows go; at least 1. Both are repeated until
            neither removes a row.
        duplicates: What to do with a user's further rows of one item: "keep_first" and
            "keep_last" (by time, then input order), "keep_all", "sum_weights" (the first row with
            the sum of the weights, 1 each where the log has none), or "auto": keep_first where
            seen items are excluded from what is recommended, else keep_all.
    """

    min_user_interactions: int = 1
    min_item_interactions: int = 1
    duplicates: str = "auto"

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name in ("min_user_interactions", "min_item_interactions"):
            if getattr(self, name) < 1:
                raise ConfigError(f"`{name}` must be at least 1, got {getattr(self, name)}.")
        if self.duplicates not in DUPLICATES:
            raise ConfigError(
                f"`duplicates` must be one of {', '.join(DUPLICATES)}, got {self.duplicates!r}."
            )


def filter_log(
    log: CodedLog, settings: FilterSettings, *, exclude_seen: bool
) -> tuple[CodedLog, list[dict[str, Any]]]:
    """Apply the filters in the order duplicates, then too few interactions.

    Where the parts were given, pairs are made unique inside each part, and only the training part
    loses users and items with too few interactions.

    Args:
        log: In input order.
        settings: Which filters.
        exclude_seen: Decides what duplicates "auto" means.

    Returns:
        The rows left, in input order, and one report a filter: its name and rule, the rows it
        removed, and the rows, users and items left.

    Raises:
        DataError: No row is left.
    """
    rule = settings.duplicates
    if rule == "auto":
        rule = "keep_first" if exclude_seen else "keep_all"
    unique, repeats = _drop_duplicates(log, rule)
    reports = [_report("duplicates", rule, log, unique) | repeats]
    dense, rounds = _drop_rare(unique, settings)
    rule = f"users {settings.min_user_interactions}, items {settings.min_item_interactions}"
    reports.append(_report("min_interactions", rule, unique, dense) | {"rounds": rounds})
    if len(dense) == 0:
        raise DataError(
            f"No interaction is left: no user has {settings.min_user_interactions} interactions "
            f"with items that have {settings.min_item_interactions} (of {len(unique)} before)."
        )
    return dense, reports


def _report(name: str, rule: str, before: CodedLog, after: CodedLog) -> dict[str, Any]:
    left = {"rows": len(after), "users": after.num_users, "items": after.num_items}
    return {"name": name, "rule": rule, "removed_rows": len(before) - len(after)} | left


def _drop_duplicates(log: CodedLog, rule: str) -> tuple[CodedLog, dict[str, int]]:
    keys = (log.users, log.items) if log.parts is None else (log.parts, log.users, log.items)
    order = log.order(*keys)
    same_pair = np.ones(max(len(log) - 1, 0), bool)  # of a row and the one before it
    for key in keys:
        same_pair &= key[order][1:] == key[order][:-1]
    same_row = same_pair.copy()
    if log.timestamps is not None:
        times = log.timestamps[order]
        same_row &= times[1:] == times[:-1]
    repeats = {
        "repeated_rows": int(same_pair.sum()),
        "exact_repeats": 0 if log.timestamps is None else int(same_row.sum()),
    }
    if rule == "keep_all" or not same_pair.any():
        return log, repeats
    if rule == "keep_last":
        return log.take(np.sort(order[np.append(~same_pair, True)])), repeats
    starts = np.flatnonzero(np.append(True, ~same_pair))
    kept = _with_sums(log, order, starts) if rule == "sum_weights" else log
    return kept.take(np.sort(order[starts])), repeats


def _with_sums(log: CodedLog, order: NDArray[np.int64], starts: NDArray[np.int64]) -> CodedLog:
    """Give the first row of each pair the sum of the pair's weights."""
    weights = np.ones(len(log), np.float64) if log.weights is None else log.weights
    sums = np.zeros(len(log), np.float32)
    sums[order[starts]] = np.add.reduceat(weights[order], starts, dtype=np.float64)
    return replace(log, weights=sums)


def _drop_rare(log: CodedLog, settings: FilterSettings) -> tuple[CodedLog, int]:
    """Drop users and items with too few rows until all have enough; also count the rounds."""
    rounds = 0
    while len(log):
        counted = slice(None) if log.parts is None else log.parts == 0
        user_counts = np.bincount(log.users[counted], minlength=len(log.user_ids))
        item_counts = np.bincount(log.items[counted], minlength=len(log.item_ids))
        kept = user_counts[log.users] >= settings.min_user_interactions
        kept &= item_counts[log.items] >= settings.min_item_interactions
        if log.parts is not None:
            kept |= log.parts != 0
        if kept.all():
            break
        log, rounds = log.take(kept), rounds + 1
    return log, rounds
