"""Rows of items that a caller gives: which columns they have, and their own vectors.

Dimensions: N given items, E output width.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.bundle import Bundle
from recsys.data import is_list, is_text, whole_column
from recsys.foundations import DataError
from recsys.index import norms_of

VECTOR = "vector"


@dataclass(frozen=True)
class GivenItems:
    """Items as read.

    Attributes:
        ids: [N], distinct.
        table: [N] rows; the columns that the bundle keeps or its model reads, lists as lists.
        vectors: [N, E], float32; zeros where none is given.
        has_vector: [N], bool.
        others: Columns that the bundle does not keep.
    """

    ids: pa.LargeStringArray
    table: pa.Table
    vectors: NDArray[np.float32]
    has_vector: NDArray[np.bool_]
    others: tuple[str, ...]

    @classmethod
    def none(cls, bundle: Bundle) -> Self:
        """Give no items."""
        ids = pa.array([], pa.large_string())
        return cls.of(bundle, pa.table({"id": ids}), list_separator="|", check_columns=False)

    @classmethod
    def of(
        cls, bundle: Bundle, table: pa.Table, *, list_separator: str, check_columns: bool = True
    ) -> Self:
        """Check a table.

        Args:
            bundle: Knows the columns.
            table: `id` (text, distinct, no nulls), feature and display columns, perhaps `vector`.
            list_separator: What stands between the values of a text where the bundle has lists.
            check_columns: Whether every column must be there that the item tower reads.

        Raises:
            DataError: A column is missing, or a vector has another width or is not finite.
        """
        kept = _kept_columns(bundle)
        named = [name for name in table.column_names if name not in ("id", VECTOR)]
        columns = {
            name: _as_trained(bundle, name, whole_column(table[name]), list_separator)
            for name in named
            if name in kept
        }
        ids = whole_column(table["id"])
        vectors, there = _read_vectors(bundle, table, ids, list_separator)
        if check_columns and not there.all():
            _check_columns(bundle, columns, ids[int(np.argmin(there))].as_py())
        given = pa.table({"id": ids, **columns}).drop_columns(["id"])
        others = tuple(name for name in named if name not in kept)
        return cls(ids, given, vectors, there, others)

    def __len__(self) -> int:
        return len(self.ids)


def _kept_columns(bundle: Bundle) -> set[str]:
    display = bundle.items.display
    shown = [] if display is None else display.column_names
    return {*bundle.items.features.schema.names, *shown}


def _check_columns(bundle: Bundle, columns: dict[str, pa.Array], item: str) -> None:
    for name in bundle.model.item_tower.features.names:
        if name not in columns:
            raise DataError(
                f"items must hold the column {name!r}, which the item tower reads, or a "
                f"{VECTOR!r} for every item; {item!r} has neither."
            )


def _as_trained(bundle: Bundle, name: str, column: pa.Array, separator: str) -> pa.Array:
    """Give a text as the list that it stands for, where training met lists."""
    spec = next((one for one in bundle.items.features.schema if one.name == name), None)
    display = bundle.items.display
    shown = display is not None and name in display.column_names and is_list(display[name].type)
    has_lists = shown or (spec is not None and spec.kind == "vector")
    if not has_lists or not is_text(column.type):
        return column
    lists = _split(column, separator)
    if spec is not None and spec.kind == "vector":
        return _as_numbers(name, lists)
    return lists


def _split(column: pa.Array, separator: str) -> pa.Array:
    text = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
    return pc.split_pattern(pc.if_else(pc.equal(text, ""), None, text), separator)


def _as_numbers(name: str, lists: pa.Array) -> pa.Array:
    try:
        return lists.cast(pa.large_list(pa.float32()))
    except pa.ArrowInvalid as error:
        raise DataError(f"The column {name!r} of items must hold numbers: {error}.") from error


def _read_vectors(
    bundle: Bundle, table: pa.Table, ids: pa.Array, separator: str
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Give vectors [N, E], and where there is one: [N]."""
    width = bundle.model.output_dim
    vectors = np.zeros((len(ids), width), np.float32)
    if VECTOR not in table.column_names:
        return vectors, np.zeros(len(ids), np.bool_)
    column = whole_column(table[VECTOR])
    if is_text(column.type) or pa.types.is_null(column.type):
        column = _as_numbers(VECTOR, _split(column.cast(pa.large_string()), separator))
    if not is_list(column.type):
        raise DataError(f"The column {VECTOR!r} of items must hold lists, got {column.type}.")
    there = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
    lengths = np.asarray(pc.fill_null(pc.list_value_length(column), width))
    if (lengths != width).any():
        row = int(np.argmax(lengths != width))
        raise DataError(
            f"The {VECTOR!r} of item {ids[row].as_py()!r} must hold {width} numbers, as the "
            f"bundle's vectors do, got {lengths[row]}."
        )
    try:
        flat = pc.list_flatten(column).cast(pa.float32(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"The column {VECTOR!r} of items must hold numbers: {error}.") from error
    vectors[there] = flat.to_numpy(zero_copy_only=False).reshape(-1, width)
    _check_finite(vectors, ids)
    return vectors, there


def _check_finite(vectors: NDArray[np.float32], ids: pa.Array) -> None:
    """Check that the vectors [N, E] and their lengths are finite in float32."""
    for values, words in (
        (vectors, "hold finite float32 numbers"),
        (norms_of(vectors)[:, None], "have a length within float32"),
    ):
        bad = ~np.isfinite(values).all(axis=1)
        if bad.any():
            item = ids[int(np.argmax(bad))].as_py()
            raise DataError(f"The {VECTOR!r} of item {item!r} must {words}.")
