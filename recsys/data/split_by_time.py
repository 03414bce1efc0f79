"""One cut in time for all interactions."""

import numpy as np

from recsys.data.coded_log import Block, CodedLog
from recsys.data.moments import format_moment, parse_moment
from recsys.data.ranked_times import RankedTimes
from recsys.data.split_settings import TEST, TRAIN, VALIDATION, Split, SplitSettings
from recsys.foundations import ConfigError


def split_by_time(log: CodedLog, clock: str, settings: SplitSettings) -> Split:
    """Give the past to training, the future to validation, what comes after it to the test.

    Raises:
        ConfigError: There is no clock, or a cut is not a moment or out of order.
    """
    if clock != "time" or not log.has("timestamp"):
        known = "an order within each user" if clock == "order" else "no timestamp"
        raise ConfigError(
            f"`split.rule` must not be temporal where the log has {known} and no clock; "
            "leave_last_out, strong_generalization and random are possible."
        )
    times = RankedTimes(log)
    test_from = _cut("test_from", settings.test_from, settings.test_share, times, len(log))
    before = len(log) if test_from is None else times.count_before(test_from)
    # The share is one of all interactions, taken from those before the test.
    validation_from = _cut(
        "validation_from", settings.validation_from, settings.validation_share, times, before
    )
    if validation_from is not None and test_from is not None and validation_from > test_from:
        raise ConfigError(
            f"`split.validation_from` must not be after `split.test_from`, got "
            f"{format_moment(validation_from)} and {format_moment(test_from)}."
        )

    def parts_of(block: Block) -> np.ndarray:
        parts = np.full(len(block), TRAIN, np.int8)
        for cut, part in ((validation_from, VALIDATION), (test_from, TEST)):
            if cut is not None:
                parts[block.columns["timestamp"] >= cut] = part
        return parts

    blocks = log.blocks("timestamp", what="splitting")
    parts = log.new_column("split", np.int8, map(parts_of, blocks))
    return Split("temporal", parts, validation_from, test_from)


def _cut(
    name: str, moment: str | int | None, share: float, times: RankedTimes, stop: int
) -> int | None:
    """Give the first moment of the part that ends before the row of rank `stop`; None: no part."""
    if moment is not None:
        return parse_moment(f"split.{name}", moment)
    count = round(share * len(times))
    return times.at(max(stop - count, 0)) if count and stop else None
