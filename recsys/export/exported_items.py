"""The items that are exported, a block at a time.

Dimensions: N exported items, B items of a block, E width of the vectors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.bundle import Bundle
from recsys.data import whole_column
from recsys.foundations import ArgumentError, Progress

ID, VECTOR, COUNT = "item_id", "vector", "training_count"


def candidate_rows(bundle: Bundle) -> NDArray[np.int64]:
    """Give the rows of the items that lookups may give, added ones too: [N], rising."""
    return bundle.live_rows


def vectors_of(bundle: Bundle, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Read the vectors of some rows, rising: [B, E], float32; the others stay on disk."""
    start, stop = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
    without_gap = len(rows) == stop - start
    return np.array(bundle.item_vectors[start:stop] if without_gap else bundle.item_vectors[rows])


@dataclass(frozen=True)
class Block:
    """Some items.

    Attributes:
        rows: [B], int64, rising; the rows in the bundle.
        ids: [B], large_string.
        vectors: [B, E], float32.
        counts: [B], int64, training events.
        columns: By name, [B] each, dictionaries decoded.
    """

    rows: NDArray[np.int64]
    ids: pa.LargeStringArray
    vectors: NDArray[np.float32]
    counts: pa.Int64Array
    columns: dict[str, pa.Array]

    def __len__(self) -> int:
        return len(self.rows)

    def vector_lists(self) -> pa.FixedSizeListArray:
        """Give the vectors as an Arrow column: [B], fixed_size_list<float32>[E]."""
        flat = pa.array(self.vectors.reshape(-1), pa.float32())
        return pa.FixedSizeListArray.from_arrays(flat, self.vectors.shape[1])


class ExportedItems:
    """The candidates of a bundle with the columns that are wanted.

    Args:
        bundle: The bundle.
        columns: Names; None: every column that the bundle keeps, without a second `item_id`.

    Raises:
        ArgumentError: The bundle keeps no column of a name.
    """

    def __init__(self, bundle: Bundle, columns: Sequence[str] | None) -> None:
        self.bundle, self.rows = bundle, candidate_rows(bundle)
        display = bundle.items.display
        self._table: pa.Table = pa.table({}) if display is None else display
        kept = [name for name in self._table.column_names if name != ID]
        unknown = [name for name in columns or () if name not in kept]
        if unknown:
            raise ArgumentError(
                f"`columns` must be among those that the bundle keeps "
                f"({', '.join(kept) or 'none'}), got {unknown[0]!r}."
            )
        self._names = kept if columns is None else list(dict.fromkeys(columns))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def dim(self) -> int:
        """Give E."""
        return int(self.bundle.model.output_dim)

    @property
    def types(self) -> dict[str, pa.DataType]:
        """Give the type of each column, dictionaries decoded."""
        return {name: self._column(name, 0, 0).type for name in self._names}

    def first(self, most: int) -> dict[str, pa.Array]:
        """Give the columns of the first items, at most so many."""
        stop = int(self.rows[:most][-1]) + 1 if len(self.rows) else 0
        return {name: self._column(name, 0, stop) for name in self._names}

    def blocks(self, what: str, at_once: int) -> Iterator[Block]:
        """Give all items in blocks, showing progress; there is at least one block.

        Args:
            what: What is being written.
            at_once: Items of a block.
        """
        with Progress(f"writing {what}", len(self), "items") as progress:
            for start in range(0, max(len(self), 1), at_once):
                yield self._block(self.rows[start : start + at_once])
                progress.advance(min(at_once, len(self) - start))

    def _block(self, rows: NDArray[np.int64]) -> Block:
        start, stop = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
        picked = pa.array(rows - start)
        columns = {name: self._column(name, start, stop).take(picked) for name in self._names}
        items = self.bundle.items
        return Block(
            rows=rows,
            ids=items.vocabulary.ids_of(rows).cast(pa.large_string()),
            vectors=vectors_of(self.bundle, rows),
            counts=pa.array(items.counts[rows], pa.int64()),
            columns=columns,
        )

    def _column(self, name: str, start: int, stop: int) -> pa.Array:
        return plain(whole_column(self._table[name].slice(start, stop - start)))


def plain(column: pa.Array) -> pa.Array:
    """Give a column of one of the few types that engines tell apart, lists of them too.

    Views become plain arrays, half floats float32, lists of any form `list`.
    """
    kind = column.type
    return column if plain_type(kind) == kind else column.cast(plain_type(kind))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Give the type that `plain` gives."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(plain_type(kind.value_type))
    return kind
