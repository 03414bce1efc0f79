"""Which interactions are for training, which for validation, which for the test."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.data.coded_log import CodedLog
from recsys.data.moments import format_moment
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
) -> Split:
    """Split a log.

    Args:
        log: In input order.
        clock: "time", "order" or "none".
        settings: The rule.
        seed: Of the random draws of users, items or interactions.
        table_ids: Ids of the table of items; None where there is none.

    Raises:
        ConfigError: The rule needs what the log lacks.
        DataError: Nothing is left to train on.
    """
    rule = settings.rule if settings.rule != "auto" else _AUTO[clock]
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
            split = Split(rule, _split_at_random(len(log), settings, seed))
        case _:
            split = Split(rule, _take_given(log))
    if not (split.parts == TRAIN).any():
        raise DataError(f"The split {rule} leaves no interaction to train on.")
    return split


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


def _take_given(log: CodedLog) -> NDArray[np.int8]:
    if log.parts is None:
        raise ConfigError("`split.rule` must not be given where the parts are not read apart.")
    return log.parts


def _leave_last_out(log: CodedLog) -> NDArray[np.int8]:
    order = log.order(log.users)
    counts = np.bincount(log.users)
    counts = counts[counts > 0]
    ends = np.cumsum(counts)
    parts = np.zeros(len(log), np.int8)
    parts[order[ends[counts >= 2] - 1]] = TEST
    parts[order[ends[counts >= 3] - 2]] = VALIDATION
    return parts


def _split_at_random(num_rows: int, settings: SplitSettings, seed: int) -> NDArray[np.int8]:
    order = make_numpy_generator(seed, "split").permutation(num_rows)
    num_test = round(settings.test_share * num_rows)
    num_validation = round(settings.validation_share * num_rows)
    parts = np.zeros(num_rows, np.int8)
    parts[order[:num_test]] = TEST
    parts[order[num_test : num_test + num_validation]] = VALIDATION
    return parts
