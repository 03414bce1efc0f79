"""Moments in settings and reports: ISO texts and microseconds since 1970, UTC."""

from datetime import UTC, datetime, timedelta

from recsys.foundations import ConfigError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_YEAR, _LAST_YEAR = 1971, 2100


def parse_moment(name: str, value: str | int) -> int:
    """Read a moment that a setting holds, as microseconds since 1970 (UTC).

    Args:
        name: Of the setting, for the error.
        value: ISO 8601 (UTC where it has no offset), or an epoch number in seconds,
            milliseconds, microseconds or nanoseconds; no number is plausible in two of them.

    Raises:
        ConfigError: It is neither, or no year from 1971 to 2100.
    """
    text = str(value).strip()
    if text.lstrip("-").isdecimal():
        moments = [int(text) * 1_000_000 // per_second for per_second in (1, 10**3, 10**6, 10**9)]
    else:
        try:
            read = datetime.fromisoformat(text)
        except ValueError as error:
            raise ConfigError(
                f"`{name}` must be a time such as 2024-01-31T00:00:00Z or 1706659200, got {text!r}."
            ) from error
        aware = read if read.tzinfo is not None else read.replace(tzinfo=UTC)
        moments = [(aware - _EPOCH) // timedelta(microseconds=1)]
    for moment in moments:
        if _plausible(moment):
            return moment
    raise ConfigError(f"`{name}` must be in the years 1971 to 2100, got {text!r}.")


def format_moment(microseconds: int) -> str:
    """Give a moment as ISO text in UTC, without a fraction where it has none."""
    moment = _EPOCH + timedelta(microseconds=microseconds)
    return moment.isoformat().replace("+00:00", "Z")


def _plausible(microseconds: int) -> bool:
    first, last = (
        datetime(_FIRST_YEAR, 1, 1, tzinfo=UTC),
        datetime(_LAST_YEAR + 1, 1, 1, tzinfo=UTC),
    )
    micro = timedelta(microseconds=1)
    return (first - _EPOCH) // micro <= microseconds < (last - _EPOCH) // micro
