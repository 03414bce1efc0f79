"""One cut in time for all interactions."""

import numpy as np
from numpy.typing import NDArray

from recsys.data.coded_log import CodedLog
from recsys.data.moments import format_moment, parse_moment
from recsys.data.split_settings import TEST, VALIDATION, Split, SplitSettings
from recsys.foundations import ConfigError


def split_by_time(log: CodedLog, clock: str, settings: SplitSettings) -> Split:
    """Give the past to training, the future to validation, what comes after it to the test.

    Raises:
        ConfigError: There is no clock, or a cut is not a moment or out of order.
    """
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
