"""Rows of text in files of bounded size."""

from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recsys.foundations import DataError


class SplitFiles:
    """Writes rows to numbered files, each below a size, as a context manager.

    Args:
        folder: Where they go.
        stem: Of their names; a number and the suffix follow.
        suffix: With its dot.
        most_bytes: The size of a file.
        opening: Stands in front of the rows of a file.
        closing: Stands behind them.
        separator: Stands between two rows.
    """

    def __init__(
        self,
        folder: Path,
        *,
        stem: str,
        suffix: str,
        most_bytes: int,
        opening: bytes = b"",
        closing: bytes = b"",
        separator: bytes = b"",
    ) -> None:
        self._folder, self._stem, self._suffix = folder, stem, suffix
        self._opening, self._closing, self._separator = opening, closing, separator
        self._room = most_bytes - len(opening) - len(closing)  # of the rows of a file
        self._file: BinaryIO | None = None
        self._size, self._count = 0, 0

    def __enter__(self) -> "SplitFiles":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def write(self, rows: pa.LargeStringArray, ids: pa.LargeStringArray) -> None:
        """Write rows.

        Args:
            rows: [B], text.
            ids: [B], of the items, for the error.

        Raises:
            DataError: A row alone is larger than a file may be.
        """
        separator = self._separator.decode()
        texts = pc.binary_join_element_wise(
            pa.scalar(separator, pa.large_string()), rows, pa.scalar("", pa.large_string())
        )
        ends = np.cumsum(pc.binary_length(texts).to_numpy())
        if not len(ends):
            return
        data = memoryview(pa.concat_arrays([texts]).buffers()[2])  # [ends[-1]] bytes, from 0
        start = 0  # the first row that is not written
        while start < len(ends):
            begin = int(ends[start - 1]) if start else 0
            stop = int(np.searchsorted(ends, begin + self._room - self._size, side="right"))
            if stop > start:
                self._write(data[begin : int(ends[stop - 1])])
            elif not self._size:
                raise self._too_large(ids[start].as_py(), int(ends[start]) - begin)
            if stop < len(ends):
                self._close()
            start = stop

    def _write(self, data: memoryview) -> None:
        self._size += len(data)
        if self._file is None:
            path = self._folder / f"{self._stem}-{self._count:06d}{self._suffix}"
            self._file, self._count = path.open("wb"), self._count + 1
            self._file.write(self._opening)
            data = data[len(self._separator) :]
        self._file.write(data)

    def _close(self) -> None:
        if self._file is not None:
            self._file.write(self._closing)
            self._file.close()
        self._file, self._size = None, 0

    def _too_large(self, item: str, size: int) -> DataError:
        return DataError(
            f"Item {item!r} takes {size:,} bytes, more than the {self._room:,} of a file: raise "
            "file_mb, or leave long columns out by columns=[...]."
        )
