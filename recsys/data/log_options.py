"""How the rows of a log are understood."""

from dataclasses import dataclass, field

from recsys.data.timestamps import UNITS, check_timezone
from recsys.foundations import ArgumentError, check_choice


@dataclass(frozen=True, kw_only=True)
class ColumnNames:
    """What the user calls the columns of the log; None: not asked for."""

    user: str = "user_id"
    item: str = "item_id"
    timestamp: str | None = "timestamp"
    rating: str | None = "rating"
    weight: str | None = "weight"
    event: str | None = None


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """How the rows of a log are understood, whatever holds them.

    Attributes:
        columns: The columns' names.
        required: The names among them that must be there; user and item always must.
        timestamp_unit: "s", "ms", "us", "ns", "iso", "order", or "auto": what most values are.
        timezone: The zone of times without an offset; "": UTC, and a mix is refused.
        min_rating: Rows rated lower, or not at all, are left out; None: ratings are not read.
        events: Kinds of event that are kept; empty: all.
        context: Columns to carry along.
        on_bad_rows: "error" or "drop".
    """

    columns: ColumnNames = field(default_factory=ColumnNames)
    required: frozenset[str] = frozenset()
    timestamp_unit: str = "auto"
    timezone: str = ""
    min_rating: float | None = None
    events: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    on_bad_rows: str = "error"

    def __post_init__(self) -> None:
        """Check what can be checked without data."""
        check_choice("on_bad_rows", self.on_bad_rows, ("error", "drop"))
        check_choice("timestamp_unit", self.timestamp_unit, UNITS)
        check_timezone(self.timezone)
        if self.min_rating is not None and self.columns.rating is None:
            raise ArgumentError("`columns.rating` must be named when `min_rating` is set.")
        if self.events and self.columns.event is None:
            raise ArgumentError("`columns.event` must be named when `events` is set.")
        reserved = {"user_id", "item_id", "timestamp", "weight"} & set(self.context)
        if reserved:
            raise ArgumentError(f"`context` must not hold {sorted(reserved)[0]!r}.")

    def must_have(self) -> list[str]:
        """List the columns without which the log cannot be read."""
        columns = self.columns
        names = [columns.user, columns.item, *self.context, *sorted(self.required)]
        if self.min_rating is not None:
            names.append(str(columns.rating))
        if self.events:
            names.append(str(columns.event))
        return list(dict.fromkeys(names))

    def settings(self) -> dict[str, str]:
        """Give the setting that names each column."""
        named = {name: f"columns.{field}" for field, name in reversed(vars(self.columns).items())}
        return {name: setting for name, setting in named.items() if name is not None}

    def may_have(self) -> list[str]:
        """List the columns that are read where they are."""
        names = [self.columns.timestamp, self.columns.weight]
        return [name for name in names if name is not None and name not in self.must_have()]
