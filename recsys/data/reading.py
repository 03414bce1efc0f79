"""Reading interactions from files or a table: ids as text, times as µs UTC or an order."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from recsys.data.log_files import LogFiles
from recsys.data.log_options import ColumnNames, LogOptions
from recsys.data.parts import TablePart, check_columns, open_parts
from recsys.data.plain_types import plain_table
from recsys.data.raw import RawLog
from recsys.data.table_format import TableFormat


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
    return open_interactions(paths, options, format=format).read()


def open_interactions(
    paths: str | Path | Sequence[str | Path],
    options: LogOptions,
    *,
    format: TableFormat,  # noqa: A002
) -> LogFiles:
    """Find the files of a log and check their columns, to have it prepared without holding it.

    Args:
        paths: A file, folder or URI, or a list of these.
        options: How the rows are understood.
        format: How the files are written.

    Raises:
        MissingFileError: A path leads nowhere.
        DataError: A file cannot be opened or lacks a column.
    """
    parts, files = open_parts(
        paths,
        format,
        required=options.must_have(),
        optional=options.may_have(),
        others=False,
        settings=options.settings(),
    )
    return LogFiles(parts, options, files)


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
    asked = {*options.must_have(), *options.may_have()}
    plain = plain_table(table.select([n for n in table.column_names if n in asked]), name=name)
    return LogFiles([TablePart.of_table(name, plain)], options, list(sources)).read()
