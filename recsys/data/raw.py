"""What reading gives and preparing takes: tables with text ids, nothing encoded yet."""

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa


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
