"""Reading delimited text: every value stays the text that was written.

Nothing is guessed: a column is text, only an empty field without quotes is null, so that ids such
as 007, NA and 1e5 stay themselves. Quoted fields may hold separators and line breaks.
"""

import codecs
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyarrow import csv

from recsys.data.malformed_rows import MalformedRows
from recsys.data.sources import SourceFile
from recsys.data.table_format import TableFormat
from recsys.foundations import DataError

_BLOCK_BYTES = 4 << 20
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def csv_columns(file: SourceFile, form: TableFormat) -> list[str]:
    """Give the names of the columns of a text file.

    Raises:
        DataError: The file is empty or cannot be decoded.
    """
    with _opened(file, form, lambda _: "skip") as reader:
        return list(reader.schema.names)


def csv_batches(
    file: SourceFile,
    form: TableFormat,
    columns: Sequence[str],
    malformed: MalformedRows,
    on_bytes: Callable[[int], None],
) -> Iterator[pa.Table]:
    """Read columns of a text file as large_string, a block at a time.

    Args:
        file: The file; compressed by the suffix .gz, .bz2, .zst or .lz4.
        form: How it is written.
        columns: Columns to read, in this order; each must be there.
        malformed: Where the rows are noted that are left out because of their number of fields.
        on_bytes: Called with the bytes of the file read since the last call.

    Raises:
        DataError: A byte does not fit the encoding, or the text is not a table.
    """
    convert = csv.ConvertOptions(
        column_types={name: pa.large_string() for name in columns},
        include_columns=list(columns),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    malformed.header_rows = int(form.header)
    with _opened(file, form, malformed, convert) as reader:
        for batch in reader:
            yield pa.Table.from_batches([batch])
            on_bytes(min(batch.nbytes, file.size_bytes))


@contextmanager
def _opened(
    file: SourceFile,
    form: TableFormat,
    handler: Callable[[Any], str],
    convert: csv.ConvertOptions | None = None,
) -> Iterator[csv.CSVStreamingReader]:
    """Open a text file as a stream of batches; errors inside the block name the file."""
    encoding = form.encoding
    read = csv.ReadOptions(
        block_size=_BLOCK_BYTES,
        column_names=list(form.names) or None,
        autogenerate_column_names=not form.header and not form.names,
        use_threads=False,  # the only way that Arrow numbers malformed rows
    )
    parse = csv.ParseOptions(
        delimiter=form.separator_of(file), newlines_in_values=True, invalid_row_handler=handler
    )
    try:
        encoding = read.encoding = _mark_of(file) or form.encoding
        with (
            file.filesystem.open_input_stream(file.path) as stream,
            csv.open_csv(
                stream, read_options=read, parse_options=parse, convert_options=convert
            ) as reader,
        ):
            yield reader
    except LookupError as error:
        raise DataError(f"`encoding` must be a text encoding, got {form.encoding!r}.") from error
    except (pa.ArrowInvalid, UnicodeError) as error:
        raise _explain(file, encoding, error) from error
    except OSError as error:
        text = (str(error).splitlines() or [""])[0]
        raise DataError(f"{file.name} cannot be read: {text.rstrip('.')}.") from error


def _mark_of(file: SourceFile) -> str | None:
    """Give the encoding that a byte order mark at the start of the file states."""
    with file.filesystem.open_input_stream(file.path) as stream:
        return marked_encoding(stream.read(4))


def marked_encoding(start: bytes) -> str | None:
    """Give the encoding that a byte order mark states; None without one.

    Args:
        start: The first bytes of a text.
    """
    for mark, encoding in _MARKS.items():
        if start.startswith(mark):
            return encoding
    return None


def _explain(file: SourceFile, encoding: str, error: Exception) -> DataError:
    """Say in one sentence why a text file could not be read."""
    if "Empty CSV" in str(error):
        return DataError(f"{file.name} is empty.")
    found = _first_undecodable(file, encoding)
    if found is not None:
        line, byte = found
        return DataError(
            f"{file.name}, line {line}: the byte 0x{byte:02x} is not {encoding} text; set "
            "dataset.file.encoding (of a lookup: file.encoding) to the file's own, such as utf-8, "
            "latin-1 or cp1252."
        )
    text = (str(error).splitlines() or [""])[0]
    return DataError(f"{file.name} cannot be read as delimited text: {text.rstrip('.')}.")


def _first_undecodable(file: SourceFile, encoding: str) -> tuple[int, int] | None:
    """Find the first byte that the encoding cannot hold: its line, from 1, and its value."""
    decoder = codecs.getincrementaldecoder(encoding)()
    lines = 0
    with file.filesystem.open_input_stream(file.path) as stream:
        while block := stream.read(_BLOCK_BYTES):
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                before = error.object[: error.start]
                return lines + before.count(b"\n") + 1, error.object[error.start]
            except UnicodeError:  # no byte order mark, where the encoding wants one
                return 1, block[0]
            lines += block.count(b"\n")
    return None
