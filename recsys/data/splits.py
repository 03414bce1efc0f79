"""Which interactions are for training, which for validation, which for the test."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.data.coded_log import PARTS, CodedLog
from recsys.data.moments import format_moment, parse_moment
from recsys.foundations import ConfigError, DataError, make_numpy_generator

RULES = ("auto", "temporal", "leave_last_out", "strong_generalization", "given", "random")
_AUTO = {"time": "temporal", "order": "leave_last_out", "none": "random"}
TRAIN, VALIDATION, TEST, VALIDATION_INPUT, TEST_INPUT = range(len(PARTS))


@dataclass(frozen=True, kw_only=True)
class SplitSettings:
    """How to split.

    Attributes:
        rule: "temporal": one cut in time for all; "leave_last_out": each user's last event is for
            the test, the one before for validation (of two events the last is for the test, a
            single one is for training); "strong_generalization": all events of held-out users;
            "random": by interaction; "given": the parts were read apart; "auto": temporal with a
            clock, leave_last_out with an order, random with neither.
        validation_share: Share of the interactions (strong_generalization: of the users); 0 for
            no validation part.
        test_share: Likewise.
        validation_from: temporal: the first moment of the validation part, in ISO form or as an
            epoch number, in place of its share.
        test_from: temporal: the first moment of the test part.
        fold_in: strong_generalization: share of a held-out user's events that is the input, the
            oldest ones; the rest is the target.
    """

    rule: str = "auto"
    validation_share: float = 0.1
    test_share: float = 0.1
    validation_from: str | int | None = None
    test_from: str | int | None = None
    fold_in: float = 0.8

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.rule not in RULES:
            raise ConfigError(f"`split.rule` must be one of {', '.join(RULES)}, got {self.rule!r}.")
        for name in ("validation_share", "test_share"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"`split.{name}` must be in [0, 1), got {getattr(self, name)}.")
        if not self.validation_share + self.test_share < 1:
            raise ConfigError(
                "`split.validation_share` and `split.test_share` must leave something to train "
                f"on, got {self.validation_share} and {self.test_share}."
            )
        if not 0 < self.fold_in < 1:
            raise ConfigError(f"`split.fold_in` must be in (0, 1), got {self.fold_in}.")


@dataclass(frozen=True)
class Split:
    """The part of each interaction.

    Attributes:
        rule: What was applied; never "auto".
        parts: [M], int8, a position in PARTS.
        validation_from: temporal: the first moment of validation, in microseconds (UTC).
        test_from: temporal: likewise of the test.
    """

    rule: str
    parts: NDArray[np.int8]
    validation_from: int | None = None
    test_from: int | None = None


def split_log(log: CodedLog, clock: str, settings: SplitSettings, seed: int) -> Split:
    """Split a log.

    Args:
        log: In input order.
        clock: "time", "order" or "none".
        settings: The rule.
        seed: Of the random draws of users or interactions.

    Raises:
        ConfigError: The rule needs what the log lacks.
        DataError: Nothing is left to train on.
    """
    rule = settings.rule if settings.rule != "auto" else _AUTO[clock]
    match rule:
        case "temporal":
            split = _split_by_time(log, clock, settings)
        case "leave_last_out":
            split = Split(rule, _leave_last_out(log))
        case "strong_generalization":
            split = Split(rule, _hold_users_out(log, clock, settings, seed))
        case "random":
            split = Split(rule, _split_at_random(len(log), settings, seed))
        case _:
            split = Split(rule, _take_given(log))
    if not (split.parts == TRAIN).any():
        raise DataError(f"The split {rule} leaves no interaction to train on.")
    return split


def _take_given(log: CodedLog) -> NDArray[np.int8]:
    if log.parts is None:
        raise ConfigError("`split.rule` must not be given where the parts are not read apart.")
    return log.parts


def describe_split(split: Split, settings: SplitSettings, clock: str) -> dict[str, Any]:
    """Say which rule held, with what, for the manifest."""
    plain: dict[str, Any] = {"rule": split.rule}
    if split.rule == "temporal":
        cuts = {"validation_from": split.validation_from, "test_from": split.test_from}
        plain |= {name: None if cut is None else format_moment(cut) for name, cut in cuts.items()}
    if split.rule in ("random", "strong_generalization"):
        plain["validation_share"] = settings.validation_share
        plain["test_share"] = settings.test_share
    if split.rule == "strong_generalization":
        plain["fold_in"] = settings.fold_in
        plain["folded_by"] = "random" if clock == "none" else clock
    return plain


def _split_by_time(log: CodedLog, clock: str, settings: SplitSettings) -> Split:
    if clock != "time" or log.timestamps is None:
        known = "an order within each user" if clock == "order" else "no timestamp"
        raise ConfigError(
            f"`split.rule` must not be temporal where the log has {known} and no clock; "
            "leave_last_out, strong_generalization and random are possible."
        )
    times = np.sort(log.timestamps)
    test_from = _cut("test_from", settings.test_from, settings.test_share, times, len(times))
    before = len(times) if test_from is None else int(np.searchsorted(times, test_from))
    # The share is one of all interactions, taken from those before the test.
    validation_from = _cut(
        "validation_from", settings.validation_from, settings.validation_share, times, before
    )
    if validation_from is not None and test_from is not None and validation_from > test_from:
        raise ConfigError(
            f"`split.validation_from` must not be after `split.test_from`, got "
            f"{format_moment(validation_from)} and {format_moment(test_from)}."
        )
    parts = np.zeros(len(log), np.int8)
    if validation_from is not None:
        parts[log.timestamps >= validation_from] = VALIDATION
    if test_from is not None:
        parts[log.timestamps >= test_from] = TEST
    return Split("temporal", parts, validation_from, test_from)


def _cut(
    name: str, moment: str | int | None, share: float, times: NDArray[np.int64], stop: int
) -> int | None:
    """Give the first moment of the part that ends before ``times[stop]``; None: no such part."""
    if moment is not None:
        return parse_moment(f"split.{name}", moment)
    count = round(share * len(times))
    return int(times[max(stop - count, 0)]) if count and stop else None


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


def _hold_users_out(
    log: CodedLog, clock: str, settings: SplitSettings, seed: int
) -> NDArray[np.int8]:
    """Hold users with at least two events out; a single event cannot be input and target."""
    generator = make_numpy_generator(seed, "split")
    counts = np.bincount(log.users, minlength=len(log.user_ids))
    candidates = generator.permutation(np.flatnonzero(counts >= 2))
    num_test = round(settings.test_share * log.num_users)
    num_validation = round(settings.validation_share * log.num_users)
    if num_test + num_validation > len(candidates):
        raise DataError(
            f"The split strong_generalization wants {num_test + num_validation} users with at "
            f"least two interactions; there are {len(candidates)}."
        )
    part_of_user = np.zeros(len(log.user_ids), np.int8)
    part_of_user[candidates[:num_test]] = TEST
    part_of_user[candidates[num_test : num_test + num_validation]] = VALIDATION
    if clock == "none":
        order = generator.permutation(len(log))
        order = order[np.argsort(log.users[order], kind="stable")]
    else:
        order = log.order(log.users)
    ends = np.cumsum(counts)
    users = log.users[order]
    place = np.arange(len(log)) - (ends - counts)[users]  # within the user, from the oldest
    num_input = np.clip(np.ceil(settings.fold_in * counts), 1, np.maximum(counts - 1, 1))
    parts = part_of_user[users]
    parts[(place < num_input[users]) & (parts == TEST)] = TEST_INPUT
    parts[(place < num_input[users]) & (parts == VALIDATION)] = VALIDATION_INPUT
    in_input_order = np.empty(len(log), np.int8)
    in_input_order[order] = parts
    return in_input_order
