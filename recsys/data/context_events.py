"""The encoded context of events, block by block, in files that are mapped."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.data.coded_log import CodedLog
from recsys.data.column_file import ColumnFile
from recsys.data.feature_encoding import fit_column
from recsys.data.feature_schema import FeatureOptions
from recsys.data.features import FeatureSchema, FeatureTable
from recsys.data.mapped_arrays import row_blocks
from recsys.data.split_settings import TRAIN
from recsys.data.work_folder import WorkFolder
from recsys.foundations import Ragged


def fit_context(
    log: CodedLog, parts: ColumnFile, context: pa.Table, wanted: dict[str, FeatureOptions]
) -> FeatureSchema:
    """Learn the encoding of context columns from the training rows, one column at a time.

    Args:
        log: With the column `row`, unless nothing is wanted.
        parts: [M], int8, the part of each row.
        context: The columns, in input order.
        wanted: Column -> how to encode it.

    Raises:
        DataError: A column does not hold what its kind needs.
    """
    if not wanted:
        return FeatureSchema(())
    trained = log.work.map_zeros("trained", log.num_input_rows, np.bool_)
    for block in log.blocks("row", what="looking at the context"):
        rows = block.columns["row"]
        trained[rows[parts.read(block.start, block.stop) == TRAIN]] = True
    specs = [fit_column(name, _filter(context[name], trained), how) for name, how in wanted.items()]
    return FeatureSchema(tuple(specs))


def _filter(column: pa.ChunkedArray, kept: NDArray[np.bool_]) -> pa.ChunkedArray:
    """Take the values of rows that are kept, chunk by chunk."""
    taken, start = [], 0
    for chunk in column.chunks:
        taken.append(chunk.filter(pa.array(kept[start : start + len(chunk)])))
        start += len(chunk)
    return pa.chunked_array(taken, column.type)


def encode_context(
    schema: FeatureSchema, context: pa.Table, rows: NDArray[np.int64], work: WorkFolder
) -> FeatureTable:
    """Encode the context of events.

    Args:
        schema: Of the context.
        context: The columns, in input order.
        rows: [N], int64, where each event stood in the input.
        work: The folder for the encoded columns.

    Raises:
        DataError: A column does not hold what the feature needs.
    """
    columns = {spec.name: _Encoded(work) for spec in schema}
    for block in _encoded_blocks(schema, context, rows):
        for name, column in columns.items():
            column.append(block.columns[name])
    return FeatureTable(schema, {name: one.map() for name, one in columns.items()}, len(rows))


def _encoded_blocks(
    schema: FeatureSchema, context: pa.Table, rows: NDArray[np.int64]
) -> Iterator[FeatureTable]:
    batches = context.to_batches()
    starts = np.cumsum([0, *(len(batch) for batch in batches)])
    for block in row_blocks(max(len(rows), 1)):
        order = np.argsort(rows[block], kind="stable")
        rising = rows[block][order]
        bounds = np.searchsorted(rising, starts)
        taken = [
            batches[number].take(pa.array(rising[first:stop] - starts[number]))
            for number, (first, stop) in enumerate(pairwise(bounds))
            if stop > first
        ]  # from the whole table Arrow would take of a copy of all texts and lists in one piece
        encoded = schema.encode(pa.Table.from_batches(taken, context.schema))
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        yield encoded.take(places)


class _Encoded:
    """One encoded column, added to block by block."""

    def __init__(self, work: WorkFolder) -> None:
        self._work = work
        self._ends = [np.zeros(1, np.int64)]
        self._files: list[ColumnFile] = []  # one, once a block tells its type
        self._width: int | None = None
        self._is_ragged = False

    def append(self, column: NDArray[Any] | Ragged) -> None:
        if isinstance(column, Ragged):
            self._is_ragged = True
            self._ends.append(self._ends[-1][-1] + column.offsets[1:])
            column = column.rows
        if not self._files:
            self._files.append(self._work.column("context", column.dtype))
            self._width = column.shape[1] if column.ndim == 2 else None
        self._files[0].append(column.reshape(-1))

    def map(self) -> NDArray[Any] | Ragged:
        values = self._files[0].map()
        if self._is_ragged:
            return Ragged(np.concatenate(self._ends), values)
        return values if self._width is None else values.reshape(-1, self._width)
