"""Which interactions are for training, which for validation, which for the test."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.data.coded_log import Block, CodedLog
from recsys.data.column_file import ColumnFile
from recsys.data.input_order import InputOrder
from recsys.data.moments import format_moment
from recsys.data.part_counts import PartCounts, count_parts
from recsys.data.split_by_time import split_by_time
from recsys.data.split_of_items import hold_items_out
from recsys.data.split_of_users import folded_by, hold_users_out
from recsys.data.split_settings import TEST, TRAIN, VALIDATION, Split, SplitSettings
from recsys.foundations import ConfigError, DataError, make_numpy_generator

_AUTO = {"time": "temporal", "order": "leave_last_out", "none": "random"}
_WITH_SHARES = ("random", "strong_generalization", "cold_items")


def split_log(
    log: CodedLog,
    clock: str,
    settings: SplitSettings,
    seed: int,
    table_ids: pa.LargeStringArray | None = None,
) -> tuple[Split, PartCounts]:
    """Split a log, and count what each part has.

    Args:
        log: After the filters; with the column `row` where `needs_input_order` says so.
        clock: "time", "order" or "none".
        settings: The rule.
        seed: Of the random draws of users, items or interactions.
        table_ids: Ids of the table of items; None where there is none.

    Raises:
        ConfigError: The rule needs what the log lacks.
        DataError: There are too few users to hold out, or nothing is left to train on.
    """
    rule = _rule(clock, settings)
    match rule:
        case "temporal":
            split = split_by_time(log, clock, settings)
        case "leave_last_out":
            split = Split(rule, _leave_last_out(log))
        case "strong_generalization":
            split = Split(rule, hold_users_out(log, clock, settings, seed))
        case "cold_items":
            split = hold_items_out(log, settings, seed, table_ids)
        case "random":
            split = Split(rule, _split_at_random(log, settings, seed))
        case _:
            split = Split(rule, _take_given(log))
    counts = count_parts(log, split.parts)
    if not counts.rows[TRAIN]:
        raise DataError(f"The split {rule} leaves no interaction to train on.")
    return split, counts


def needs_input_order(clock: str, settings: SplitSettings) -> bool:
    """Tell whether a split depends on the order of the rows beyond that within a user."""
    rule = _rule(clock, settings)
    return rule == "random" or (
        rule == "strong_generalization" and folded_by(settings, clock) == "random"
    )


def describe_split(split: Split, settings: SplitSettings, clock: str) -> dict[str, Any]:
    """Say which rule held, with what, for the manifest."""
    plain: dict[str, Any] = {"rule": split.rule}
    if split.rule == "temporal":
        cuts = {"validation_from": split.validation_from, "test_from": split.test_from}
        plain |= {name: None if cut is None else format_moment(cut) for name, cut in cuts.items()}
    if split.rule in _WITH_SHARES:
        plain["validation_share"] = settings.validation_share
        plain["test_share"] = settings.test_share
    if split.rule == "strong_generalization":
        plain["fold_in"] = settings.fold_in
        plain["folded_by"] = folded_by(settings, clock)
    plain |= {f"{part}_items": number for part, number in split.held_out.items()}
    return plain


def _rule(clock: str, settings: SplitSettings) -> str:
    return settings.rule if settings.rule != "auto" else _AUTO[clock]


def _take_given(log: CodedLog) -> ColumnFile:
    if not log.has("part"):
        raise ConfigError("`split.rule` must not be given where the parts are not read apart.")
    return log.columns["part"]


def _leave_last_out(log: CodedLog) -> ColumnFile:
    blocks = log.blocks(what="splitting")
    return log.new_column("split", np.int8, map(_last_of_each, blocks))


def _last_of_each(block: Block) -> NDArray[np.int8]:
    parts, ends = np.zeros(len(block), np.int8), np.cumsum(block.counts)
    parts[ends[block.counts >= 2] - 1] = TEST
    parts[ends[block.counts >= 3] - 2] = VALIDATION
    return parts


def _split_at_random(log: CodedLog, settings: SplitSettings, seed: int) -> ColumnFile:
    sizes = {
        TEST: round(settings.test_share * len(log)),
        VALIDATION: round(settings.validation_share * len(log)),
    }
    part_of = InputOrder(log).draw_parts(make_numpy_generator(seed, "split"), sizes)
    values = (part_of(block.columns["row"]) for block in log.blocks("row", what="splitting"))
    return log.new_column("split", np.int8, values)
