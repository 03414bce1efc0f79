"""A table in several files, read file by file with each file's own columns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from recsys.data.bad_rows import BadRows
from recsys.data.reading_csv import MalformedRows, csv_columns, read_csv
from recsys.data.reading_parquet import parquet_columns, read_parquet
from recsys.data.sources import SourceFile, find_sources
from recsys.data.table_format import TableFormat
from recsys.foundations import DataError, Progress


@dataclass(frozen=True)
class Part:
    """The columns asked for of one file.

    Attributes:
        name: What messages call the file.
        table: The columns that the file has among those asked for, in input order.
        malformed: Rows of a text file that were left out; None for Parquet.
    """

    name: str
    table: pa.Table
    malformed: MalformedRows | None = None

    @property
    def num_malformed(self) -> int:
        """Count the rows that were left out."""
        return self.malformed.count if self.malformed else 0

    def note_malformed(self, bad: BadRows) -> None:
        """Add the rows that were left out to the bad ones."""
        if self.malformed is not None and self.malformed.first is not None:
            row, found = self.malformed.first
            reason = "wrong number of fields"
            bad.counts[reason] = bad.counts.get(reason, 0) + self.malformed.count
            bad.first.setdefault(reason, f"{self.name}, row {row} has {found}")
            bad.num_rows += self.malformed.count


def read_parts(
    paths: str | Path | Sequence[str | Path],
    form: TableFormat,
    *,
    required: Sequence[str],
    optional: Sequence[str],
    others: bool,
    settings: Mapping[str, str] | None = None,
) -> tuple[list[Part], list[SourceFile]]:
    """Read columns of every file that the paths lead to.

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
    present = [_columns_of(file, form) for file in files]
    for file, names in zip(files, present, strict=True):
        check_columns(file.name, names, required, settings or {})
    _check_optional(files, present, optional)
    wanted = [*required, *optional]
    parts = []
    with Progress("reading", sum(file.size_bytes for file in files), "bytes") as progress:
        for file, names in zip(files, present, strict=True):
            chosen = [name for name in dict.fromkeys(wanted) if name in names]
            chosen += [name for name in names if others and name not in wanted]
            parts.append(_read_part(file, form, chosen, progress.advance))
    return parts, files


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


def _columns_of(file: SourceFile, form: TableFormat) -> list[str]:
    """Give the columns of one file; a name that stands twice is refused."""
    parquet = form.kind_of(file) == "parquet"
    names = parquet_columns(file) if parquet else csv_columns(file, form)
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{file.name} has the column {name!r} twice.")
    return names


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


def _read_part(
    file: SourceFile, form: TableFormat, columns: list[str], on_bytes: Callable[[int], None]
) -> Part:
    if form.kind_of(file) == "parquet":
        return Part(file.name, read_parquet(file, columns, on_bytes))
    table, malformed = read_csv(file, form, columns, on_bytes)
    return Part(file.name, table, malformed)


def _plain_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decode a dictionary, and give text of any kind as large_string."""
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_string_view(column.type):
        column = pc.cast(column, pa.large_string())
    return column
