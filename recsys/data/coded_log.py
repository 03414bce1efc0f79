"""A log whose ids are codes: what filters and splits work on."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.data.raw import RawLog
from recsys.foundations import DataError

PARTS = ("train", "validation", "test", "validation_input", "test_input")
RESERVED = ("user_id", "item_id", "timestamp", "weight")


@dataclass(frozen=True)
class CodedLog:
    """M interactions in input order; a code is a position in the sorted ids.

    Attributes:
        user_ids: Sorted, distinct; filters leave ids that no row uses any more.
        item_ids: Likewise.
        users: [M], int64.
        items: [M], int64.
        timestamps: [M], int64, or None.
        weights: [M], float32, at least 0, or None.
        input_rows: [M], int64, where each row stood in the input.
        parts: [M], int8, a position in PARTS, where the parts were given; else None.
    """

    user_ids: pa.LargeStringArray
    item_ids: pa.LargeStringArray
    users: NDArray[np.int64]
    items: NDArray[np.int64]
    timestamps: NDArray[np.int64] | None
    weights: NDArray[np.float32] | None
    input_rows: NDArray[np.int64]
    parts: NDArray[np.int8] | None

    def __len__(self) -> int:
        return len(self.users)

    @property
    def num_users(self) -> int:
        """Count the users that have a row."""
        return int(np.count_nonzero(np.bincount(self.users, minlength=1)))

    @property
    def num_items(self) -> int:
        """Count the items that have a row."""
        return int(np.count_nonzero(np.bincount(self.items, minlength=1)))

    @property
    def pairs(self) -> NDArray[np.int64]:
        """Give one number for each (user, item): [M], int64."""
        return self.users * np.int64(max(len(self.item_ids), 1)) + self.items

    def take(self, positions: NDArray[np.integer] | NDArray[np.bool_]) -> "CodedLog":
        """Take rows by position or mask."""
        return replace(
            self,
            users=self.users[positions],
            items=self.items[positions],
            timestamps=None if self.timestamps is None else self.timestamps[positions],
            weights=None if self.weights is None else self.weights[positions],
            input_rows=self.input_rows[positions],
            parts=None if self.parts is None else self.parts[positions],
        )

    def order(self, *keys: NDArray[np.integer]) -> NDArray[np.int64]:
        """Sort by the keys, the first one first, then by time, then by input order: positions."""
        columns = [] if self.timestamps is None else [self.timestamps]
        return np.lexsort((*columns, *reversed(keys))).astype(np.int64)


def code_log(table: pa.Table, parts: NDArray[np.int8] | None = None) -> CodedLog:
    """Turn ids into codes.

    Args:
        table: As in `RawLog`.
        parts: [M], where the parts were given.

    Raises:
        DataError: There is no row, or a weight is null, negative or not finite.
    """
    if table.num_rows == 0:
        raise DataError("The log has no usable row.")
    user_ids, users = _code(table["user_id"])
    item_ids, items = _code(table["item_id"])
    return CodedLog(
        user_ids,
        item_ids,
        users,
        items,
        table["timestamp"].to_numpy() if "timestamp" in table.column_names else None,
        _weights(table),
        np.arange(table.num_rows, dtype=np.int64),
        parts,
    )


def concatenate_parts(given: Mapping[str, RawLog]) -> tuple[pa.Table, NDArray[np.int8]]:
    """Put parts that were given one behind the other.

    Weights are of use in training only: another part that has none gets 1, and weights that the
    training part lacks are left out.

    Returns:
        The rows of all parts, and the part of each: [M], int8, a position in PARTS.

    Raises:
        DataError: The parts differ in their clock or their columns.
    """
    first = given["train"]
    for name, log in given.items():
        if log.clock != first.clock:
            raise DataError(
                f"The {name} part has the clock {log.clock!r}, the train part {first.clock!r}."
            )
        columns, wanted = set(log.table.column_names), set(first.table.column_names)
        if columns - {"weight"} != wanted - {"weight"}:
            raise DataError(
                f"The {name} part has the columns {', '.join(log.table.column_names)}; "
                f"the train part has {', '.join(first.table.column_names)}."
            )
    names = first.table.column_names
    try:
        tables = [_with_weights(log.table).select(names) for log in given.values()]
        table = pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"The parts' columns differ in type: {error}.") from error
    codes = np.array([PARTS.index(name) for name in given], np.int8)
    return table, np.repeat(codes, [log.table.num_rows for log in given.values()])


def _with_weights(table: pa.Table) -> pa.Table:
    if "weight" in table.column_names:
        return table
    return table.append_column("weight", pa.array(np.ones(table.num_rows, np.float32)))


def _code(column: pa.ChunkedArray) -> tuple[pa.LargeStringArray, NDArray[np.int64]]:
    encoded = column.cast(pa.large_string()).combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return encoded.dictionary.take(pa.array(order)), rank[encoded.indices.to_numpy()]


def _weights(table: pa.Table) -> NDArray[np.float32] | None:
    if "weight" not in table.column_names:
        return None
    column = table["weight"]
    weights = np.asarray(column.cast(pa.float32()).to_numpy(), np.float32)
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        value = column[int(np.flatnonzero(wrong)[0])].as_py()
        raise DataError(
            f"A weight must be a finite number of at least 0; {int(wrong.sum())} rows are not, "
            f"the first holds {value}."
        )
    return weights
