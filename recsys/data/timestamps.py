"""Times in any notation, as µs UTC or as an order.

Reading has two passes. `parse_times` turns one file's column into numbers and moments without
deciding what the numbers mean; `resolve_times` decides that once, over all files, and checks it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.data.iso_times import parse_iso
from recsys.data.numbers import NUMBER, is_text
from recsys.foundations import ArgumentError

UNITS = ("auto", "s", "ms", "us", "ns", "iso", "order")
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# From 1971 to 2100. The ranges of the four units do not overlap, so a plausible number has one.
_FIRST_SECOND, _LAST_SECOND = 31_536_000, 4_102_444_800


@dataclass(frozen=True)
class ParsedTimes:
    """A time column of N rows before the unit of its numbers is known.

    Attributes:
        whole: [N] int64; a number's whole part, or a moment in µs since 1970.
        fraction: [N] float64; a number's fraction, in [0, 1).
        is_number: [N] bool.
        is_zoned: [N] bool; a moment whose offset from UTC is known.
        is_local: [N] bool; a moment as some clock showed it.
        is_null: [N] bool; rows in none of the four cannot be read.
        typed: Whether the file's column is of a date or time type.
        one_unit: The unit in which every row is known to be a whole number and a date from 1971 to
            2100; "" where that is not known.
    """

    whole: NDArray[np.int64]
    fraction: NDArray[np.float64]
    is_number: NDArray[np.bool_]
    is_zoned: NDArray[np.bool_]
    is_local: NDArray[np.bool_]
    is_null: NDArray[np.bool_]
    typed: bool = False
    one_unit: str = ""


@dataclass(frozen=True)
class ResolvedTimes:
    """A time column of N rows after the unit is known.

    Attributes:
        values: [N] int64, µs UTC or the order; 0 where there is none.
        is_null: [N] bool.
        unreadable: [N] bool; a value is there that is not of the notation.
        implausible: [N] bool; the moment lies outside 1971 to 2100.
    """

    values: NDArray[np.int64]
    is_null: NDArray[np.bool_]
    unreadable: NDArray[np.bool_]
    implausible: NDArray[np.bool_]


def parse_times(column: pa.ChunkedArray) -> ParsedTimes:
    """Read a column of times of any type, without deciding on a unit.

    Args:
        column: [N]; numbers, text of numbers or ISO 8601, Arrow dates or timestamps.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return parse_times(pc.cast(column, kind.value_type))
    if is_text(kind):
        return _parse_text(column)
    null = pc.is_null(column, nan_is_null=True).to_numpy()
    nothing, there = np.zeros(len(column), bool), ~null
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        moments = pc.cast(column, pa.timestamp("us", getattr(kind, "tz", None)), safe=False)
        whole = pc.fill_null(pc.cast(moments, pa.int64()), 0).to_numpy()
        zoned = there if getattr(kind, "tz", None) else nothing
        fraction = np.zeros(len(column))
        return ParsedTimes(whole, fraction, nothing, zoned, there & ~zoned, null, typed=True)
    if pa.types.is_integer(kind) and kind != pa.uint64():
        whole = pc.fill_null(pc.cast(column, pa.int64()), 0).to_numpy()
        unit = "" if column.null_count else _one_unit(whole)
        return ParsedTimes(
            whole, np.zeros(len(column)), there, nothing, nothing, null, one_unit=unit
        )
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        whole, fraction = _split(pc.cast(column, pa.float64(), safe=False).to_numpy())
        return ParsedTimes(whole, fraction, there, nothing, nothing, null)
    empty = np.zeros(len(column), np.int64)
    return ParsedTimes(empty, np.zeros(len(column)), nothing, nothing, nothing, null)


def _one_unit(whole: NDArray[np.int64]) -> str:
    """Give the unit in which the least and the greatest number, and so all, are dates."""
    if not len(whole):
        return ""
    unit = unit_that_fits(int(whole.min()))
    return unit if unit == unit_that_fits(int(whole.max())) else ""


def _split(numbers: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Split numbers into whole part and fraction; what int64 cannot hold becomes its end."""
    bounded = np.clip(np.nan_to_num(numbers), -(2.0**62), 2.0**62)
    floor = np.floor(bounded)
    return floor.astype(np.int64), bounded - floor


def _parse_text(column: pa.ChunkedArray) -> ParsedTimes:
    text = pc.utf8_trim_whitespace(column)
    null = np.asarray(pc.fill_null(pc.equal(text, ""), True))
    numeric = pc.match_substring_regex(text, NUMBER)
    integral = pc.match_substring_regex(text, r"^-?\d{1,18}$|^[0-8]\d{18}$")
    integers = pc.cast(pc.if_else(integral, text, None), pa.int64())
    whole = pc.fill_null(integers, 0).to_numpy().copy()
    fraction = np.zeros(len(text))
    is_number = np.asarray(pc.fill_null(numeric, False))
    others = is_number & ~np.asarray(pc.fill_null(integral, False))
    if others.any():
        picked = pc.cast(pc.filter(text, pa.array(others)), pa.float64())
        whole[others], fraction[others] = _split(np.asarray(picked))
    is_zoned, is_local = np.zeros(len(text), bool), np.zeros(len(text), bool)
    rest = ~is_number & ~null
    if rest.any():
        picked = pc.filter(text, pa.array(rest))
        whole[rest], is_zoned[rest], is_local[rest] = parse_iso(picked)
    return ParsedTimes(whole, fraction, is_number, is_zoned, is_local, null)


def count_by_unit(times: ParsedTimes) -> dict[str, int]:
    """Count the numbers that are dates from 1971 to 2100, for each unit."""
    if times.one_unit:
        counts = dict.fromkeys(PER_SECOND, 0)
        return counts | {times.one_unit: len(times.whole)}
    return {
        unit: int(np.count_nonzero(_plausible(times.whole, unit) & times.is_number))
        for unit in PER_SECOND
    }


def recognise_unit(counts: Mapping[str, int], *, has_numbers: bool) -> str:
    """Give the unit of most numbers: the one in which they are dates from 1971 to 2100.

    Args:
        counts: As `count_by_unit` gives them, of all numbers.
        has_numbers: Whether there is any number.

    Returns:
        "s", "ms", "us" or "ns"; "iso" where there are no numbers; "" where no unit makes a single
        one of them a date.
    """
    if not has_numbers:
        return "iso"
    best = max(counts, key=lambda unit: counts[unit])
    return best if counts[best] else ""


def resolve_times(times: ParsedTimes, *, unit: str, timezone: str, strict: bool) -> ResolvedTimes:
    """Give a column's times as µs UTC, or as the order it is.

    Args:
        times: As `parse_times` gave it.
        unit: What numbers count: "s", "ms", "us" or "ns" since 1970; "": something else; "iso":
            a number is no time; "order": all are numbers and count nothing but the order.
        timezone: The zone of moments without an offset; "": UTC. Of a time that the clock showed
            twice the earlier is meant.
        strict: Whether text that is not a number is no time either, unless the unit is "iso".
    """
    if unit == "order":
        readable = times.is_number & (times.fraction == 0) & _within(times.whole, 2**62)
        nothing = np.zeros(len(readable), bool)
        values = np.where(readable, times.whole, 0)
        return ResolvedTimes(values, times.is_null, ~readable & ~times.is_null, nothing)
    if unit and unit == times.one_unit:
        nothing = np.zeros(len(times.whole), bool)
        values = _scale(times.whole, times.fraction, unit)
        return ResolvedTimes(values, nothing, nothing, nothing)
    numbers = times.is_number & (unit != "iso")
    moments = times.is_zoned | times.is_local
    if strict and unit != "iso" and not times.typed:
        moments &= False
    values = np.where(moments, times.whole, 0)
    plausible = _plausible(values, "us") & moments
    if timezone and times.is_local.any():
        local = times.is_local & plausible
        values[local] = _to_utc(values[local], timezone)
    if unit in PER_SECOND:
        fits = _plausible(times.whole, unit) & numbers
        values[fits] = _scale(times.whole[fits], times.fraction[fits], unit)
        plausible |= fits
    readable = numbers | moments
    values[~plausible] = 0
    return ResolvedTimes(values, times.is_null, ~readable & ~times.is_null, readable & ~plausible)


def check_timezone(timezone: str) -> None:
    """Check that a zone is known; "" stands for none.

    Raises:
        ArgumentError: It is not.
    """
    try:
        _to_utc(np.zeros(1, np.int64), timezone or "UTC")
    except pa.ArrowInvalid as error:
        example = "such as Europe/Berlin"
        raise ArgumentError(f"`timezone` must be a zone {example}, got {timezone!r}.") from error


def unit_that_fits(number: int) -> str:
    """Give the unit in which a number is a date from 1971 to 2100; "" where none is."""
    for unit in PER_SECOND:
        if _plausible(np.array([number]), unit)[0]:
            return unit
    return ""


def _plausible(whole: NDArray[np.int64], unit: str) -> NDArray[np.bool_]:
    """Tell which numbers of a unit lie in 1971 to 2100."""
    per_second = PER_SECOND[unit]
    fits: NDArray[np.bool_] = (whole >= _FIRST_SECOND * per_second) & (
        whole < _LAST_SECOND * per_second
    )
    return fits


def _within(whole: NDArray[np.int64], limit: int) -> NDArray[np.bool_]:
    """Tell which numbers lie between -limit and limit; int64 has no absolute value of its least."""
    return (whole > -limit) & (whole < limit)


def _scale(whole: NDArray[np.int64], fraction: NDArray[np.float64], unit: str) -> NDArray[np.int64]:
    """Turn plausible numbers of a unit into µs."""
    per_second = PER_SECOND[unit]
    if per_second > 10**6:
        return whole // (per_second // 10**6)
    micros = 10**6 // per_second
    return whole * micros + np.rint(fraction * micros).astype(np.int64)


def _to_utc(local: NDArray[np.int64], timezone: str) -> NDArray[np.int64]:
    """Turn µs as a zone's clock showed them into µs UTC."""
    shown = pa.array(local).view(pa.timestamp("us"))
    moments = pc.assume_timezone(shown, timezone, ambiguous="earliest", nonexistent="earliest")
    return np.asarray(moments.view(pa.int64()), dtype=np.int64)
