"""The clock of a log: one meaning of the time column over all its files."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.data.parts import Part
from recsys.data.timestamps import (
    ParsedTimes,
    ResolvedTimes,
    parse_times,
    recognise_unit,
    resolve_times,
    unit_that_fits,
)
from recsys.foundations import DataError


@dataclass(frozen=True)
class Clock:
    """The times of a log, a file at a time.

    Attributes:
        kind: "time" (µs UTC), "order" or "none".
        times: One entry a file; empty if there is no clock.
        hints: One entry a file: what may be wrong with its first implausible time.
        unreadable_hint: What a time that cannot be read does not fit.
        warnings: Sentences for the summary.
    """

    kind: str
    times: list[ResolvedTimes] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    unreadable_hint: str = ""
    warnings: list[str] = field(default_factory=list)


def resolve_clock(parts: Sequence[Part], *, column: str | None, unit: str, timezone: str) -> Clock:
    """Read the time column of every file and give it one meaning.

    Args:
        parts: The files.
        column: The time column's name; None, or in no file: the log has no clock.
        unit: As declared; "auto": the unit in which most numbers are dates from 1971 to 2100.
        timezone: Zone of times without an offset; "": UTC.

    Raises:
        DataError: Some times have an offset, others none, and no zone is declared; or an order is
            declared and the column holds dates.
    """
    if column is None or not any(column in part.table.column_names for part in parts):
        return Clock("none")
    parsed = [parse_times(part.table[column]) for part in parts]
    unreadable = "" if unit == "auto" else f", which does not fit timestamp_unit={unit}"
    if unit == "order":
        _refuse_dates(parts, parsed, column)
        times = [resolve_times(each, unit="order", timezone="", strict=True) for each in parsed]
        return Clock("order", times, [""] * len(parts), unreadable)
    chosen = recognise_unit(parsed) if unit == "auto" else unit
    warnings = [] if timezone else _check_offsets(parts, parsed, column)
    strict = unit != "auto"
    times = [resolve_times(e, unit=chosen, timezone=timezone, strict=strict) for e in parsed]
    hints = [_hint(*each, chosen, unit) for each in zip(parsed, times, strict=True)]
    return Clock("time", times, hints, unreadable, warnings)


def read_moments(table: pa.Table, column: str, *, name: str) -> NDArray[np.int64] | None:
    """Read a time column of a table in memory as a log's is read whose unit is "auto".

    Args:
        table: N rows.
        column: The time column.
        name: What messages call the table.

    Returns:
        [N], int64, µs UTC; None where no unit makes a date of one of its numbers, so that they are
        an order at most.

    Raises:
        DataError: A row has no time or one that cannot be read, or some times have an offset from
            UTC and others none.
    """
    if recognise_unit([parse_times(table[column])]) == "":
        return None
    clock = resolve_clock([Part(name, table)], column=column, unit="auto", timezone="")
    [times], [hint] = clock.times, clock.hints
    for bad, why in (
        (times.is_null, ""),
        (times.unreadable, ", which cannot be read as a time"),
        (times.implausible, hint),
    ):
        if bad.any():
            row = int(np.argmax(bad))
            value = "no value" if times.is_null[row] else repr(table[column][row].as_py())[:80]
            raise DataError(f"{name}, row {row + 1}: column {column!r} holds {value}{why}.")
    return times.values


def _refuse_dates(parts: Sequence[Part], parsed: Sequence[ParsedTimes], column: str) -> None:
    for part, times in zip(parts, parsed, strict=True):
        if times.typed:
            raise DataError(
                f"{part.name}: the column {column!r} is of type {part.table[column].type}, "
                "which is a time; timestamp_unit=order needs integers."
            )


def _check_offsets(parts: Sequence[Part], parsed: Sequence[ParsedTimes], column: str) -> list[str]:
    """Refuse a mix of times with and without an offset; say that times without are taken as UTC."""
    num_zoned = sum(int(times.is_zoned.sum()) for times in parsed)
    num_local = sum(int(times.is_local.sum()) for times in parsed)
    if not num_local:
        return []
    if not num_zoned:
        return [
            f"Times in {column!r} have no offset and were read as UTC; dataset.timezone "
            "changes that."
        ]
    part, times = next(each for each in zip(parts, parsed, strict=True) if each[1].is_local.any())
    row = int(np.argmax(times.is_local))
    raise DataError(
        f"{part.name}, row {row + 1}: column {column!r} holds "
        f"{str(part.table[column][row].as_py())!r} without an offset from UTC, as {num_local} "
        f"times do, while {num_zoned} have one; set dataset.timezone (of a lookup: timezone) "
        "for those without."
    )


def _hint(parsed: ParsedTimes, times: ResolvedTimes, chosen: str, declared: str) -> str:
    """Say what may be wrong with the first implausible time of a file."""
    if not times.implausible.any():
        return ""
    row = int(np.argmax(times.implausible))
    if not parsed.is_number[row]:
        return ", which is not a date from 1971 to 2100"
    if not chosen:
        return ", which no unit makes a date from 1971 to 2100; is it timestamp_unit=order?"
    fitting = unit_that_fits(int(parsed.whole[row]))
    read_as = f"timestamp_unit={chosen}" if declared != "auto" else f"{chosen}, as most are"
    other = f", it looks like {fitting}" if fitting else ""
    return f", which is no date from 1971 to 2100 when read as {read_as}{other}"
