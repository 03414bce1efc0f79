"""What reading gives and preparing takes: tables with text ids, nothing encoded yet."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recsys.data.id_kinds import TEXT
from recsys.foundations import DataError

_ROWS_AT_ONCE = 2**17


class ReadAgain(Exception):  # noqa: N818 - no error: what was read was read by a wrong guess
    """Says that batches that were given are void and that the log is to be read once more."""


class LogSource(Protocol):
    """Interactions that are read batch by batch, and as often as is asked.

    What reading counted is known when the last batch was taken.
    """

    @property
    def clock(self) -> str:
        """Give "time", "order" or "none"."""

    @property
    def schema(self) -> pa.Schema:
        """Give names and types of what `batches` gives; of ids any type."""

    @property
    def dropped(self) -> dict[str, int]:
        """Give the rows left out while reading, by reason."""

    @property
    def num_rows_read(self) -> int:
        """Count the rows in the files."""

    @property
    def sources(self) -> list[dict[str, Any]]:
        """Give path, size_bytes and sha256 of each file."""

    @property
    def warnings(self) -> list[str]:
        """Give sentences for the summary."""

    def id_kinds(self) -> dict[str, str]:
        """Give the forms in which `user_id` and `item_id` can be told apart (see `id_kinds`)."""

    def batches(self, kinds: Mapping[str, str]) -> Iterator[pa.Table]:
        """Give good rows in input order, with the columns of `RawLog`.

        Args:
            kinds: The forms of `user_id` and `item_id`: those that were named, or "text".

        Raises:
            DataError: A row cannot be read and is not to be left out.
            ReadAgain: All batches so far are void; the next call will not say so.
        """


@dataclass(frozen=True)
class RawLog:
    """Interactions as read, in input order; bad rows and rows below the threshold are out.

    Attributes:
        table: Columns `user_id` and `item_id` (large_string, no nulls); `timestamp` (int64, no
            nulls) unless `clock` is "none"; `weight` (float32) if there is one; then the context
            columns under their own names, as read.
        clock: "time" (`timestamp` is µs UTC), "order" (an integer order within a user) or "none".
        dropped: Reason -> rows left out while reading, in the order of the checks.
        num_rows_read: Rows in the files.
        sources: One entry a file: path, size_bytes, sha256.
        warnings: Sentences for the summary.
    """

    table: pa.Table
    clock: str
    dropped: dict[str, int]
    num_rows_read: int
    sources: list[dict[str, Any]]
    warnings: list[str] = field(default_factory=list)

    @property
    def schema(self) -> pa.Schema:
        """Give the columns' names and types."""
        return self.table.schema

    def id_kinds(self) -> dict[str, str]:
        """Give "text" for `user_id` and `item_id`."""
        return {"user_id": TEXT, "item_id": TEXT}

    def batches(self, kinds: Mapping[str, str]) -> Iterator[pa.Table]:
        """Give slices of the table.

        Raises:
            DataError: A weight is null, negative or not finite.
        """
        del kinds  # only text can have been named
        table = self.table
        for place, name in enumerate(table.column_names):
            if name in ("user_id", "item_id"):
                table = table.set_column(place, name, pc.cast(table[name], pa.large_string()))
            elif name == "weight":
                table = table.set_column(place, name, _checked_weights(table[name]))
        for start in range(0, table.num_rows, _ROWS_AT_ONCE):
            yield table.slice(start, _ROWS_AT_ONCE)


@dataclass(frozen=True)
class RawEntities:
    """Items or users as read: one row an id.

    Attributes:
        table: Column `id` (large_string, no nulls, distinct), then the other columns as read.
        dropped: Reason -> rows left out.
        sources: One entry a file: path, size_bytes, sha256.
        warnings: Sentences for the summary, such as conflicting repeats by id.
    """

    table: pa.Table
    dropped: dict[str, int]
    sources: list[dict[str, Any]]
    warnings: list[str] = field(default_factory=list)


def _checked_weights(column: pa.ChunkedArray) -> pa.ChunkedArray:
    narrow = pc.cast(column, pa.float32())
    weights = np.asarray(narrow.to_numpy(), np.float32)
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        value = column[int(np.flatnonzero(wrong)[0])].as_py()
        raise DataError(
            f"A weight must be a finite number of at least 0; {int(wrong.sum())} rows are not, "
            f"the first holds {value}."
        )
    return narrow
