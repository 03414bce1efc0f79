"""Reading interactions from files or a table: ids as text, times as µs UTC or an order."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.data.bad_rows import BadRows, RowCheck
from recsys.data.clocks import Clock, resolve_clock
from recsys.data.ids import ids_as_text
from recsys.data.numbers import as_numbers
from recsys.data.parts import Part, check_columns, join_columns, read_parts
from recsys.data.raw import RawLog
from recsys.data.table_format import TableFormat
from recsys.data.timestamps import UNITS, check_timezone
from recsys.foundations import ArgumentError, DataError, check_choice


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


def read_interactions(
    paths: str | Path | Sequence[str | Path],
    *,
    format: TableFormat,  # noqa: A002
    columns: ColumnNames,
    required: frozenset[str] = frozenset(),
    timestamp_unit: str = "auto",
    timezone: str = "",
    min_rating: float | None = None,
    events: Sequence[str] = (),
    context: Sequence[str] = (),
    on_bad_rows: str = "error",
) -> RawLog:
    """Read a log of interactions.

    Rows of an event kind that is not kept or below the rating threshold go first and are no bad
    rows. Bad rows have no user, item or time, a time that cannot be read or lies outside 1971 to
    2100, a weight that is missing, negative or not finite, or another number of fields than the
    header. The answer does not depend on how rows are spread over files, only on their order.

    Args:
        paths: A file, folder or URI, or a list of these.
        format: How the files are written.
        columns: The columns' names. One that is named by default and absent from every file is
            simply not there.
        required: Names of columns that must be there.
        timestamp_unit: See `LogOptions`, also for what follows.
        timezone: Zone of times without an offset.
        min_rating: Lowest rating kept.
        events: Kinds of event kept, by `columns.event`.
        context: Columns to carry along.
        on_bad_rows: "error" or "drop".

    Raises:
        MissingFileError: A path leads nowhere.
        DataError: A file, column or row cannot be read; the message names it and its value.
        ArgumentError: An option is not one of the choices, or needs another one.
    """
    options = LogOptions(
        columns=columns,
        required=required,
        timestamp_unit=timestamp_unit,
        timezone=timezone,
        min_rating=min_rating,
        events=tuple(events),
        context=tuple(context),
        on_bad_rows=on_bad_rows,
    )
    parts, files = read_parts(
        paths,
        format,
        required=options.must_have(),
        optional=options.may_have(),
        others=False,
        settings=options.settings(),
    )
    return _build_log(parts, options, [file.describe() for file in files])


def interactions_from_table(
    table: pa.Table,
    options: LogOptions,
    *,
    name: str = "the table",
    sources: Sequence[dict[str, Any]] = (),
) -> RawLog:
    """Read a log from a table in memory, by the rules of `read_interactions`.

    Args:
        table: One interaction a row; columns that are not asked for are ignored.
        options: How the rows are understood.
        name: What messages call the table.
        sources: Where it came from, for the manifest.

    Raises:
        DataError: A column is missing or a row cannot be read.
    """
    check_columns(name, table.column_names, options.must_have())
    return _build_log([Part(name, table)], options, list(sources))


def _build_log(parts: Sequence[Part], options: LogOptions, sources: list[dict[str, Any]]) -> RawLog:
    """Check all rows of all files, then join the good ones."""
    columns = options.columns
    clock = resolve_clock(
        parts, column=columns.timestamp, unit=options.timestamp_unit, timezone=options.timezone
    )
    unwanted: dict[str, int] = {}
    bad, cleaned = BadRows(), []
    for number, part in enumerate(parts):
        part.note_malformed(bad)
        check = RowCheck(part.name, part.table, bad, np.ones(len(part.table), bool))
        _leave_unwanted(check, options, unwanted)
        bad.num_rows += int(check.keep.sum())
        given: dict[str, Any] = {}
        given["user_id"] = _ids(check, columns.user, "user")
        given["item_id"] = _ids(check, columns.item, "item")
        if clock.kind != "none":
            _check_times(check, str(columns.timestamp), clock, number)
            given["timestamp"] = clock.times[number].values
        if columns.weight is not None and columns.weight in part.table.column_names:
            given["weight"] = _weights(check, columns.weight)
        given |= {name: part.table[name] for name in options.context}
        cleaned.append(Part(part.name, pa.table(given).filter(pa.array(check.keep))))
    bad.refuse(always=options.on_bad_rows == "error")
    table = pa.table({name: join_columns(cleaned, name) for name in cleaned[0].table.column_names})
    num_rows = sum(len(part.table) + part.num_malformed for part in parts)
    if table.num_rows == 0 and unwanted:
        raise DataError(_nothing_left(parts, options, unwanted, num_rows))
    return RawLog(table, clock.kind, unwanted | bad.counts, num_rows, sources, clock.warnings)


def _nothing_left(
    parts: Sequence[Part], options: LogOptions, unwanted: dict[str, int], num_rows: int
) -> str:
    """Say which setting left nothing of a log, and what the log holds instead."""
    reasons = ", ".join(f"{count} {reason}" for reason, count in unwanted.items())
    text = f"{parts[0].name}: no row is left of {num_rows} ({reasons})"
    if "event of another kind" in unwanted:
        name = str(options.columns.event)
        found = [pc.unique(part.table[name].cast(pa.large_string())).to_pylist() for part in parts]
        present = list(dict.fromkeys(kind for kinds in found for kind in kinds if kind is not None))
        kinds = ", ".join(map(repr, present[:5])) + (", ..." if len(present) > 5 else "")
        text += f"; dataset.events keeps {', '.join(map(repr, options.events))}, "
        text += f"the column {name!r} holds {kinds or 'no value'}"
    return text + "."


def _leave_unwanted(check: RowCheck, options: LogOptions, unwanted: dict[str, int]) -> None:
    """Take out and count the rows of other events and those below the threshold."""
    if options.events:
        name = str(options.columns.event)
        kinds = ids_as_text(check.table[name], file=check.file, name=name)
        kept = pc.is_in(kinds, value_set=pa.array(options.events, pa.large_string())).to_numpy()
        _count(unwanted, "event of another kind", check.keep & ~kept)
        np.logical_and(check.keep, kept, out=check.keep)
    if options.min_rating is not None:
        name = str(options.columns.rating)
        ratings, strange = as_numbers(check.table[name])
        check.bad.num_rows += int((strange & check.keep).sum())
        check.leave_out("unreadable rating", strange, name)
        kept = ratings >= options.min_rating  # false for NaN: a missing rating fails
        _count(unwanted, "below the rating threshold", check.keep & ~kept)
        np.logical_and(check.keep, kept, out=check.keep)


def _ids(check: RowCheck, name: str, what: str) -> pa.ChunkedArray:
    """Give ids as text; rows without one are bad."""
    ids = ids_as_text(check.table[name], file=check.file, name=name)
    check.leave_out(f"null {what} id", pc.is_null(ids).to_numpy(), name)
    check.leave_out(f"empty {what} id", pc.fill_null(pc.equal(ids, ""), False).to_numpy(), name)
    return ids


def _check_times(check: RowCheck, name: str, clock: Clock, number: int) -> None:
    """Take out the rows of file `number` that have no usable time."""
    times = clock.times[number]
    check.leave_out("null timestamp", times.is_null, name)
    check.leave_out("unreadable timestamp", times.unreadable, name, hint=clock.unreadable_hint)
    check.leave_out("implausible timestamp", times.implausible, name, hint=clock.hints[number])


def _weights(check: RowCheck, name: str) -> NDArray[np.float32]:
    """Give weights as float32; rows without a usable one are bad."""
    weights, strange = as_numbers(check.table[name])
    with np.errstate(over="ignore"):  # beyond float32 it is infinite, which is refused
        narrow = weights.astype(np.float32)
    check.leave_out("unreadable weight", strange, name)
    check.leave_out("null weight", np.isnan(narrow), name)
    check.leave_out("negative weight", narrow < 0, name)
    check.leave_out("infinite weight", np.isinf(narrow), name)
    return narrow


def _count(counts: dict[str, int], reason: str, rows: NDArray[np.bool_]) -> None:
    """Add rows to a count; a reason without rows is not listed."""
    if rows.any():
        counts[reason] = counts.get(reason, 0) + int(rows.sum())
