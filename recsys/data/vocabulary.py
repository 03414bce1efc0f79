"""The two-way map between ids, as the outside knows them, and rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.data.text_words import hash_texts
from recsys.foundations import DataError


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Ids in the order of their rows.

    Attributes:
        ids: large_string, distinct, no nulls; row r is ``ids[r]``.
    """

    ids: pa.LargeStringArray

    @classmethod
    def from_ids(cls, ids: Sequence[str] | pa.Array | pa.ChunkedArray) -> "Vocabulary":
        """Make a vocabulary of ids in the order of their rows.

        Raises:
            DataError: An id is null or stands twice.
        """
        array = _as_text(ids)
        if array.null_count:
            raise DataError("A vocabulary holds a null id.")
        vocabulary = cls(array)
        if len(vocabulary) and len(pc.unique(array)) != len(array):
            repeated = pc.value_counts(array).filter(
                pc.greater(pc.struct_field(pc.value_counts(array), 1), 1)
            )
            raise DataError(f"A vocabulary holds the id {repeated[0]['values'].as_py()!r} twice.")
        return vocabulary

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, ids: Sequence[str] | pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
        """Look up rows: [N], int64; -1 where an id is unknown or null."""
        wanted = _as_text(ids)
        if len(wanted) >= len(self) or wanted.null_count or self._sorted_hashes is None:
            found = pc.fill_null(pc.index_in(wanted, value_set=self.ids), -1)
            return np.asarray(found.to_numpy(zero_copy_only=False), np.int64)
        hashes, order = self._sorted_hashes
        wanted_hashes = hash_texts(wanted)
        places = np.minimum(np.searchsorted(hashes, wanted_hashes), len(hashes) - 1)
        candidates = order[places]
        same = pc.equal(self.ids.take(pa.array(candidates)), wanted)
        return np.where(same.to_numpy(zero_copy_only=False), candidates, -1)

    def ids_of(self, rows: NDArray[np.integer]) -> pa.LargeStringArray:
        """Give the ids of rows, in their order; a row outside the vocabulary is refused."""
        if len(rows) and (rows.min() < 0 or rows.max() >= len(self)):
            raise DataError(f"A row lies outside the vocabulary of {len(self)} ids.")
        return self.ids.take(pa.array(rows))

    @cached_property
    def _sorted_hashes(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]] | None:
        """Hashes in rising order and the row of each; None where two ids share a hash."""
        hashes = hash_texts(self.ids)
        order = np.argsort(hashes, kind="stable")
        hashes = hashes[order]
        return None if (hashes[1:] == hashes[:-1]).any() else (hashes, order)


def _as_text(ids: Sequence[str] | pa.Array | pa.ChunkedArray) -> pa.LargeStringArray:
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.cast(pa.large_string()).combine_chunks()
    if isinstance(ids, pa.ChunkedArray):  # an empty one does not combine into an array
        return pa.array([], pa.large_string())
    if isinstance(ids, pa.Array):
        return ids.cast(pa.large_string())
    return pa.array(list(ids), pa.large_string())
