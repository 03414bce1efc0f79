"""Filters of the log: repeated pairs, then users and items with too few interactions."""

from dataclasses import dataclass
from typing import Any

from recsys.data.coded_log import CodedLog
from recsys.data.rare_entities import drop_rare
from recsys.data.repeated_pairs import PairFilter
from recsys.data.spilled_log import SpilledLog, order_log
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
    spilled: SpilledLog, settings: FilterSettings, *, exclude_seen: bool
) -> tuple[CodedLog, list[dict[str, Any]]]:
    """Apply the filters in the order duplicates, then too few interactions.

    Where the parts were given, pairs are made unique inside each part, and only the training part
    loses users and items with too few interactions.

    Args:
        spilled: The whole log; its rows are taken from it.
        settings: Which filters.
        exclude_seen: Decides what duplicates "auto" means.

    Returns:
        The rows left, and one report a filter: its name and rule, the rows it removed, and the
        rows, users and items left.

    Raises:
        DataError: No row is left.
    """
    rule = settings.duplicates
    if rule == "auto":
        rule = "keep_first" if exclude_seen else "keep_all"
    pairs = PairFilter(rule, len(spilled.item_ids))
    unique = order_log(spilled, pairs)
    reports = [_report("duplicates", rule, len(spilled), unique) | pairs.counts()]
    num_unique = len(unique)
    dense, rounds = drop_rare(
        unique, settings.min_user_interactions, settings.min_item_interactions
    )
    rule = f"users {settings.min_user_interactions}, items {settings.min_item_interactions}"
    reports.append(_report("min_interactions", rule, num_unique, dense) | {"rounds": rounds})
    if len(dense) == 0:
        raise DataError(
            f"No interaction is left: no user has {settings.min_user_interactions} interactions "
            f"with items that have {settings.min_item_interactions} (of {num_unique} before)."
        )
    return dense, reports


def _report(name: str, rule: str, before: int, after: CodedLog) -> dict[str, Any]:
    left = {"rows": len(after), "users": after.num_users, "items": after.num_items}
    return {"name": name, "rule": rule, "removed_rows": before - len(after)} | left
