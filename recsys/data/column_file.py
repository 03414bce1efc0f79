"""A column that lies on disk: written from first to last, read by ranges, or mapped."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class ColumnFile:
    """Values of one type in a file, one behind the other.

    What is read by ranges goes into ordinary memory, so that it does not pile up as the pages of a
    mapped file would; and only writing through the file system tells of a full disk.

    Args:
        path: The file; it is made.
        dtype: Of the values.
    """

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self._path, self._length = path, 0
        self._file = path.open("w+b", buffering=0)

    def __len__(self) -> int:
        return self._length

    def append(self, values: NDArray[Any]) -> None:
        """Add values behind the last one; they must fit the type."""
        whole = np.ascontiguousarray(values, self.dtype)
        rest = whole.reshape(-1).view(np.uint8).data
        self._file.seek(0, os.SEEK_END)
        while len(rest):  # one call writes 2 GiB at most
            rest = rest[self._file.write(rest) :]
        self._length += len(whole)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Give values start to before stop."""
        values = np.empty(stop - start, self.dtype)
        self.read_into(values, start)
        return values

    def read_into(self, values: NDArray[Any], start: int) -> None:
        """Fill a contiguous array of the column's type with values from `start` on."""
        rest = values.reshape(-1).view(np.uint8).data
        self._file.seek(start * self.dtype.itemsize)
        while len(rest):
            count = self._file.readinto(rest)
            if not count:
                raise EOFError(f"{self._path} ends before value {start + len(values)}.")
            rest = rest[count:]

    def map(self) -> NDArray[Any]:
        """Map the whole column, to be read only; the file must stay."""
        if not self._length:
            return np.zeros(0, self.dtype)
        return np.memmap(self._path, self.dtype, "r", shape=self._length).view(np.ndarray)

    def clear(self) -> None:
        """Forget all values."""
        self._file.seek(0)
        self._file.truncate()
        self._length = 0

    def close(self) -> None:
        """Close the file; what was mapped stays readable."""
        self._file.close()

    def remove(self) -> None:
        """Close the file and remove it."""
        self.close()
        self._path.unlink(missing_ok=True)
