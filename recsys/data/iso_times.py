"""ISO 8601 times out of text, with and without an offset."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_ISO = (
    r"^(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"
    r"(?:[Tt ](?P<hour>\d{2}):(?P<minute>\d{2})"
    r"(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r" ?(?P<zone>[Zz]|UTC|[+-]\d{2}(?::?\d{2})?)?)?$"
)
_MINUTE = 60_000_000  # µs


def parse_iso(
    text: pa.Array | pa.ChunkedArray,
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Read ISO 8601 dates and times such as `2024-01-03T01:30:00.5+02:00`.

    A blank may stand for the T; the time, its seconds and fraction, and the offset may be absent.
    Digits of the fraction past the microsecond are cut off.

    Args:
        text: [N], text without blanks around it; null is not a time.

    Returns:
        [N] int64: µs since 1970, in UTC where the text has an offset, else as the clock showed it
        (0 where it is no time); [N] bool: has an offset; [N] bool: has none. Neither: no time.
    """
    if not len(text):
        return np.zeros(0, np.int64), np.zeros(0, bool), np.zeros(0, bool)
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):  # quick where all are alike
        try:
            moments = pc.cast(text, kind)
        except pa.ArrowInvalid:
            continue
        there, local = np.asarray(pc.is_valid(text)), np.full(len(text), kind.tz is None)
        return _micros(moments), there & ~local, there & local
    return _parse_each(text)


def _micros(moments: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
    return np.asarray(pc.fill_null(pc.cast(moments, pa.int64()), 0), dtype=np.int64)


def _parse_each(
    text: pa.Array | pa.ChunkedArray,
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Read times written in different ways, by their fields."""
    fields = pc.extract_regex(text, _ISO)
    if isinstance(fields, pa.ChunkedArray):
        fields = fields.combine_chunks()
    matches = np.asarray(pc.is_valid(fields))
    year, month, day = (_integer(fields, name) for name in ("year", "month", "day"))
    hour, minute, second = (_integer(fields, name) for name in ("hour", "minute", "second"))
    digits = pc.utf8_slice_codeunits(
        pc.utf8_rpad(pc.fill_null(pc.struct_field(fields, "fraction"), ""), 6, "0"), 0, 6
    )
    valid = matches & (hour < 24) & (minute < 60) & (second < 60)
    valid &= (month >= 1) & (month <= 12) & (day >= 1) & (year >= 1)
    months = (year - 1970) * 12 + np.where(valid, month - 1, 0)
    first = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    following = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    valid &= day <= following - first
    minutes = ((first + day - 1) * 24 + hour) * 60 + minute
    micros = minutes * _MINUTE + second * 1_000_000 + np.asarray(pc.cast(digits, pa.int64()))
    zone = pc.fill_null(pc.struct_field(fields, "zone"), "")
    offset, zoned = _offset_minutes(zone)
    valid &= np.abs(offset) < 24 * 60
    micros -= offset * _MINUTE
    return np.where(valid, micros, 0), valid & zoned, valid & ~zoned


def _integer(fields: pa.StructArray, name: str) -> NDArray[np.int64]:
    """Give one field as numbers; a field that is absent counts 0."""
    text = pc.fill_null(pc.struct_field(fields, name), "")
    return np.asarray(pc.cast(pc.if_else(pc.equal(text, ""), "0", text), pa.int64()))


def _offset_minutes(zone: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Give the offsets east of UTC in minutes, and where one is stated."""
    signed = pc.extract_regex(zone, r"^(?P<sign>[+-])(?P<hours>\d{2}):?(?P<minutes>\d{2})?$")
    hours, minutes = _integer(signed, "hours"), _integer(signed, "minutes")
    negative = np.asarray(pc.fill_null(pc.equal(pc.struct_field(signed, "sign"), "-"), False))
    return np.where(negative, -1, 1) * (hours * 60 + minutes), np.asarray(pc.not_equal(zone, ""))
