"""Reading Parquet: each file by its own schema, so that parts may differ."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pyarrow import parquet

from recsys.data.plain_types import plain_schema, plain_table
from recsys.data.sources import SourceFile
from recsys.foundations import DataError

_ROWS_AT_ONCE = 2**17
_BUFFER_BYTES = 2**20


def parquet_schema(file: SourceFile) -> pa.Schema:
    """Give the names and types of the columns of a Parquet file.

    Raises:
        DataError: It is not a Parquet file.
    """
    with _opened(file) as opened:
        return plain_schema(opened.schema_arrow)


def parquet_batches(
    file: SourceFile, columns: Sequence[str], on_bytes: Callable[[int], None]
) -> Iterator[pa.Table]:
    """Read columns of a Parquet file, in its plain types, a part of a row group at a time.

    Args:
        file: The file.
        columns: Columns to read; each must be there.
        on_bytes: Called with the bytes of the file read since the last call.

    Raises:
        DataError: It is not a Parquet file, or it is damaged, or its text is not UTF-8.
    """
    names = list(columns)
    with _opened(file) as opened:
        total = max(opened.metadata.num_rows, 1)
        for group in range(opened.num_row_groups):  # of several at once Arrow keeps dictionaries
            for batch in _batches(file, opened, group, names):
                _check_text(file, batch)
                yield plain_table(pa.Table.from_batches([batch]).select(names), name=file.name)
                on_bytes(file.size_bytes * batch.num_rows // total)


def _batches(
    file: SourceFile, opened: parquet.ParquetFile, group: int, names: list[str]
) -> Iterator[pa.RecordBatch]:
    try:
        yield from opened.iter_batches(_ROWS_AT_ONCE, row_groups=[group], columns=names)
    except pa.ArrowInvalid as error:
        for name in names:
            if pa.types.is_fixed_size_list(opened.schema_arrow.field(name).type):
                _check_fixed_lists(file, opened, group, name)
        raise error


def _check_fixed_lists(
    file: SourceFile, opened: parquet.ParquetFile, group: int, name: str
) -> None:
    """Refuse lists of one length with a null among them, which Arrow writes but cannot read."""
    try:
        opened.read_row_group(group, columns=[name])
    except pa.ArrowInvalid as error:
        kind = opened.schema_arrow.field(name).type
        raise DataError(
            f"{file.name}: the column {name!r} is of type {kind} and holds a null list, which "
            "cannot be read back; write it as lists of any length."
        ) from error


def _check_text(file: SourceFile, batch: pa.RecordBatch) -> None:
    """Refuse text that is not UTF-8, which Parquet lets pass and all that follows relies on."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise DataError(
                f"{file.name}: the column {name!r} is damaged or holds bytes that are no text."
            ) from error


@contextmanager
def _opened(file: SourceFile) -> Iterator[parquet.ParquetFile]:
    """Open a Parquet file; errors inside the block name the file."""
    try:
        with (
            file.filesystem.open_input_file(file.path) as stream,
            # A buffer makes Arrow read a column of a row group page by page, not at once.
            parquet.ParquetFile(stream, buffer_size=_BUFFER_BYTES) as opened,
        ):
            yield opened
    except UnicodeDecodeError as error:
        raise DataError(f"{file.name} cannot be read as Parquet: a name is no text.") from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        text = (str(error).splitlines() or [""])[0]
        raise DataError(f"{file.name} cannot be read as Parquet: {text.rstrip('.')}.") from error
