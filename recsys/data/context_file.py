"""The context columns of a log on disk, in input order, and mapped from there."""

from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from recsys.data.work_folder import WorkFolder
from recsys.foundations import DataError


class ContextFile:
    """Takes batches of context columns; as a context manager it ends the file.

    Args:
        work: The folder for the file.
        schema: Of the columns; without any nothing is written.
    """

    def __init__(self, work: WorkFolder, schema: pa.Schema) -> None:
        self._work, self._schema = work, schema
        self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def clear(self) -> None:
        """Forget all rows; their file goes."""
        self._end()
        self._path.unlink()
        self._begin()

    def add(self, batch: pa.Table) -> None:
        """Add rows; columns that are no context are left out.

        Raises:
            DataError: A value does not fit the type that all files have in common.
        """
        if self._schema.names and self._writer is not None:
            columns = [_as(batch[field.name], field) for field in self._schema]
            self._writer.write_table(pa.table(columns, schema=self._schema))

    def map(self) -> pa.Table:
        """Map all rows once the file has ended."""
        with pa.memory_map(str(self._path)) as source:
            return pa.ipc.open_file(source).read_all()

    def _begin(self) -> None:
        self._path = self._work.new_path("context")
        self._sink = pa.OSFile(str(self._path), "wb")
        self._writer: pa.ipc.RecordBatchFileWriter | None = pa.ipc.new_file(
            self._sink, self._schema
        )

    def _end(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            try:
                writer.close()  # writes what ends the file
            finally:
                self._sink.close()


def _as(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if column.type == field.type:
        return column
    try:
        return pc.cast(column, field.type)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"The column {field.name!r} has types that do not go together: of all files it is "
            f"{field.type}, of one {column.type}, which holds more ({error})."
        ) from error
