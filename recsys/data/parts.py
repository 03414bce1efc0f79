"""A table in several files, read file by file with each file's own columns."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from recsys.data.bad_rows import BadRows
from recsys.data.malformed_rows import MalformedRows
from recsys.data.reading_csv import csv_batches, csv_columns
from recsys.data.reading_parquet import parquet_batches, parquet_schema
from recsys.data.sources import SourceFile, find_sources
from recsys.data.table_format import TableFormat
from recsys.foundations import DataError, Progress

_ROWS_AT_ONCE = 2**17


@dataclass(frozen=True)
class Part:
    """The columns asked for of one file, or some of its rows.

    Attributes:
        name: What messages call the file.
        table: The columns that the file has among those asked for, in input order.
        malformed: Rows of a text file that were left out; None for Parquet.
    """

    name: str
    table: pa.Table
    malformed: MalformedRows | None = None

    def note_malformed(self, bad: BadRows) -> None:
        """Add the rows that were left out to the bad ones."""
        if self.malformed is not None:
            self.malformed.note(bad, self.name)


@dataclass(frozen=True)
class TablePart:
    """One file of a table, which can be read more than once.

    Attributes:
        name: What messages call the file.
        schema: The columns asked for that the file has, in its types.
        size_bytes: Of the file.
        batches: Gives the rows in input order, given where malformed rows are noted and what is
            called with the bytes read since the last call.
    """

    name: str
    schema: pa.Schema
    size_bytes: int
    batches: Callable[[MalformedRows, Callable[[int], None]], Iterator[pa.Table]]

    @classmethod
    def of_table(cls, name: str, table: pa.Table) -> "TablePart":
        """Take a table in memory for a file."""

        def batches(_: MalformedRows, on_bytes: Callable[[int], None]) -> Iterator[pa.Table]:
            for start in range(0, table.num_rows, _ROWS_AT_ONCE):
                rows = table.slice(start, _ROWS_AT_ONCE)
                yield rows
                on_bytes(rows.nbytes)

        return cls(name, table.schema, table.nbytes, batches)


def open_parts(
    paths: str | Path | Sequence[str | Path],
    form: TableFormat,
    *,
    required: Sequence[str],
    optional: Sequence[str],
    others: bool,
    settings: Mapping[str, str] | None = None,
) -> tuple[list[TablePart], list[SourceFile]]:
    """Find the files that the paths lead to, and check their columns.

    Args:
        paths: See `find_sources`.
        form: How the files are written.
        required: Columns that every file must have.
        optional: Columns that either every file has or none.
        others: Whether all other columns are read too.
        settings: Required column -> the setting that names it, for the message where it is absent.

    Raises:
        MissingFileError: A path leads nowhere.
        DataError: A file cannot be read, lacks a column, or has one twice.
    """
    files = find_sources(paths)
    schemas = [_schema_of(file, form) for file in files]
    for file, schema in zip(files, schemas, strict=True):
        check_columns(file.name, schema.names, required, settings or {})
    _check_optional(files, [schema.names for schema in schemas], optional)
    wanted = [*required, *optional]
    parts = []
    for file, schema in zip(files, schemas, strict=True):
        chosen = [name for name in dict.fromkeys(wanted) if name in schema.names]
        chosen += [name for name in schema.names if others and name not in wanted]
        parts.append(_open_part(file, form, pa.schema([schema.field(name) for name in chosen])))
    return parts, files


def read_parts(
    paths: str | Path | Sequence[str | Path],
    form: TableFormat,
    *,
    required: Sequence[str],
    optional: Sequence[str],
    others: bool,
    settings: Mapping[str, str] | None = None,
) -> tuple[list[Part], list[SourceFile]]:
    """Read columns of every file that the paths lead to; see `open_parts`."""
    parts, files = open_parts(
        paths, form, required=required, optional=optional, others=others, settings=settings
    )
    read = []
    with Progress("reading", sum(part.size_bytes for part in parts), "bytes") as progress:
        for part in parts:
            malformed = MalformedRows()
            batches = [part.schema.empty_table(), *part.batches(malformed, progress.advance)]
            read.append(Part(part.name, pa.concat_tables(batches), malformed))
    return read, files


def join_columns(parts: Sequence[Part], name: str) -> pa.ChunkedArray:
    """Give one column of all parts, in a type that holds them all.

    Text of any kind becomes large_string, integers and floats widen; a part without the column
    gives nulls.

    Raises:
        DataError: Two parts hold types that do not go together.
    """
    pieces = [
        _plain_text(part.table[name])
        if name in part.table.column_names
        else pa.chunked_array([pa.nulls(len(part.table))])
        for part in parts
    ]
    tables = [pa.table({name: piece}) for piece in pieces]
    try:
        return pa.concat_tables(tables, promote_options="permissive")[name]
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        kinds: dict[str, str] = {}
        for part, piece in zip(parts, pieces, strict=True):
            kinds.setdefault(str(piece.type), part.name)
        found = ", ".join(f"{kind} in {file}" for kind, file in kinds.items())
        raise DataError(
            f"The column {name!r} has types that do not go together: {found}."
        ) from error


def _schema_of(file: SourceFile, form: TableFormat) -> pa.Schema:
    """Give the columns of one file; a name that stands twice is refused."""
    if form.kind_of(file) == "parquet":
        schema = parquet_schema(file)
    else:
        schema = pa.schema([(name, pa.large_string()) for name in csv_columns(file, form)])
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise DataError(f"{file.name} has the column {name!r} twice.")
    return schema


def check_columns(
    name: str,
    present: Sequence[str],
    required: Sequence[str],
    settings: Mapping[str, str] | None = None,
) -> None:
    """Check that a table has the columns that it must have.

    Args:
        name: What the message calls the table.
        present: Its columns.
        required: Those that it must have.
        settings: Required column -> the setting that names it, such as `columns.user`; for a
            column that is not there, no other name can be given.

    Raises:
        DataError: One is missing; the message lists those that are there.
    """
    missing = [column for column in required if column not in present]
    if not missing:
        return
    shown = ", ".join(repr(column[:60]) for column in present[:12])
    setting, hint = (settings or {}).get(missing[0]), ""
    if settings and len(present) == 1:
        hint = " Is the separator another one (dataset.file.separator)?"
    elif setting is not None:
        hint = (
            f" Name it by dataset.{setting}=NAME (of a lookup: {setting}=NAME); where the file has "
            "no header line, by dataset.file.header=false and dataset.file.names."
        )
    raise DataError(
        f"{name} has no column {missing[0]!r}; it has {shown}"
        f"{', ...' if len(present) > 12 else ''}.{hint}"
    )


def _check_optional(
    files: Sequence[SourceFile], present: Sequence[Sequence[str]], optional: Sequence[str]
) -> None:
    """Check that a column which one file has is in all of them."""
    for column in optional:
        having = [file.name for file, names in zip(files, present, strict=True) if column in names]
        lacking = [f.name for f, names in zip(files, present, strict=True) if column not in names]
        if having and lacking:
            raise DataError(
                f"{lacking[0]} has no column {column!r}, which {having[0]} has "
                f"({len(lacking)} of {len(files)} files lack it)."
            )


def _open_part(file: SourceFile, form: TableFormat, schema: pa.Schema) -> TablePart:
    is_parquet = form.kind_of(file) == "parquet"

    def batches(malformed: MalformedRows, on_bytes: Callable[[int], None]) -> Iterator[pa.Table]:
        if is_parquet:
            return parquet_batches(file, schema.names, on_bytes)
        return csv_batches(file, form, schema.names, malformed, on_bytes)

    return TablePart(file.name, schema, file.size_bytes, batches)


def _plain_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decode a dictionary, and give text of any kind as large_string."""
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_string_view(column.type):
        column = pc.cast(column, pa.large_string())
    return column
