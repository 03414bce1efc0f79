"""Reading Parquet: each file by its own schema, so that parts may differ."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyarrow import parquet

from recsys.data.sources import SourceFile
from recsys.foundations import DataError


def parquet_columns(file: SourceFile) -> list[str]:
    """Give the names of the columns of a Parquet file.

    Raises:
        DataError: It is not a Parquet file.
    """
    with _opened(file) as opened:
        return list(opened.schema_arrow.names)


def read_parquet(file: SourceFile, columns: list[str], on_bytes: Callable[[int], None]) -> pa.Table:
    """Read columns of a Parquet file, in its types, row group by row group.

    Args:
        file: The file.
        columns: Columns to read; each must be there.
        on_bytes: Called with the bytes of the file read since the last call.

    Raises:
        DataError: It is not a Parquet file, or it is damaged.
    """
    with _opened(file) as opened:
        total = max(opened.metadata.num_rows, 1)
        groups = [opened.schema_arrow.empty_table().select(columns)]
        for number in range(opened.num_row_groups):
            group = opened.read_row_group(number, columns=columns).select(columns)
            groups.append(group)
            on_bytes(file.size_bytes * group.num_rows // total)
    return pa.concat_tables(groups)


@contextmanager
def _opened(file: SourceFile) -> Iterator[parquet.ParquetFile]:
    """Open a Parquet file; errors inside the block name the file."""
    try:
        with (
            file.filesystem.open_input_file(file.path) as stream,
            parquet.ParquetFile(stream) as opened,
        ):
            yield opened
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        text = (str(error).splitlines() or [""])[0]
        raise DataError(f"{file.name} cannot be read as Parquet: {text.rstrip('.')}.") from error
