"""The distinct ids of a log, in the order of their codes."""

from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.data.column_file import ColumnFile
from recsys.data.growing_array import GrowingArray
from recsys.data.hashing import string_buffers
from recsys.data.id_kinds import TEXT, UNSIGNED
from recsys.data.text_words import order_of_texts
from recsys.data.work_folder import WorkFolder

IdArray: TypeAlias = NDArray[np.int64] | pa.LargeStringArray


class IdList(Protocol):
    """Ids that are added in blocks; the first one has code 0."""

    def __len__(self) -> int: ...

    def append(self, ids: IdArray) -> None:
        """Add ids, in the form that their kind has in batches."""

    def texts(self) -> pa.LargeStringArray:
        """Give all ids as text."""

    def remove(self) -> None:
        """Remove what lies on disk; the list is of no more use."""


def make_id_list(kind: str, work: WorkFolder) -> IdList:
    """Make an empty list for ids of a kind (see `id_kinds`)."""
    return TextIds(work) if kind == TEXT else NumericIds(unsigned=kind == UNSIGNED)


class NumericIds:
    """Whole numbers of 64 bits, in memory.

    Args:
        unsigned: Whether the bits are those of unsigned numbers.
    """

    def __init__(self, *, unsigned: bool) -> None:
        self._unsigned = unsigned
        self._blocks: list[NDArray[np.int64]] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, ids: IdArray) -> None:
        """Add numbers: [M], int64."""
        block = np.array(ids, np.int64)
        self._blocks.append(block)
        self._length += len(block)

    def texts(self) -> pa.LargeStringArray:
        """Give decimal digits."""
        kind = np.uint64 if self._unsigned else np.int64
        parts = [pc.cast(pa.array(block.view(kind)), pa.large_string()) for block in self._blocks]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.large_string())

    def remove(self) -> None:
        """Do nothing: there is no file."""


class TextIds:
    """Texts; their bytes lie on disk, eight to sixteen bytes an id in memory.

    Args:
        work: Where the bytes are put.
    """

    def __init__(self, work: WorkFolder) -> None:
        self._bytes: ColumnFile = work.column("ids", np.uint8)
        self._offsets = GrowingArray(np.int64)
        self._offsets.append(np.zeros(1, np.int64))
        self._texts: pa.LargeStringArray | None = None  # None: some were added since

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def append(self, ids: IdArray) -> None:
        """Add texts: [M], large_string without nulls."""
        offsets, symbols = string_buffers(ids)
        self._offsets.append(offsets[1:] + len(self._bytes))
        self._bytes.append(symbols)
        self._texts = None

    def texts(self) -> pa.LargeStringArray:
        """Give all texts; their bytes are mapped, and nothing is copied."""
        if self._texts is None:
            offsets = pa.py_buffer(self._offsets.values)
            buffers = [None, offsets, pa.py_buffer(self._bytes.map())]
            self._texts = pa.Array.from_buffers(pa.large_string(), len(self), buffers)
        return self._texts

    def remove(self) -> None:
        """Remove the bytes."""
        self._bytes.remove()


class KnownIds:
    """The ids behind the codes of a log once all are known.

    Args:
        ids: All of them.
    """

    def __init__(self, ids: IdList) -> None:
        self._ids = ids

    def __len__(self) -> int:
        return len(self._ids)

    @cached_property
    def texts(self) -> pa.LargeStringArray:
        """Give the ids, by code."""
        return self._ids.texts()

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Give the codes in the order of their ids' bytes: [C], int64."""
        return order_of_texts(self.texts)
