"""The folder beside the output that holds what does not fit in memory while a log is prepared."""

import contextlib
import errno
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from recsys.data.column_file import ColumnFile
from recsys.foundations import DataError, temporary_folder

_FULL = (errno.ENOSPC, errno.EDQUOT)


class WorkFolder:
    """Files for a while.

    Args:
        path: The folder, which is there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._numbers = itertools.count()
        self._columns: list[ColumnFile] = []

    def new_path(self, name: str) -> Path:
        """Give a path that no other file of the folder has."""
        return self.path / f"{next(self._numbers)}-{name}"

    def column(self, name: str, dtype: DTypeLike) -> ColumnFile:
        """Make a column; the name is for people who look into the folder."""
        column = ColumnFile(self.new_path(name), dtype)
        self._columns.append(column)
        return column

    def map_zeros(self, name: str, length: int, dtype: DTypeLike) -> NDArray[Any]:
        """Map a new file of zeros, to be read and written anywhere.

        Its space is taken at once, for a map could not say that the disk is full.
        """
        path = self.new_path(name)
        with path.open("w+b") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, max(length, 1) * np.dtype(dtype).itemsize)
            return np.memmap(file, dtype, "r+", shape=max(length, 1)).view(np.ndarray)[:length]

    def close(self) -> None:
        """Close all columns."""
        for column in self._columns:
            column.close()


@contextlib.contextmanager
def work_folder(output: Path) -> Iterator[WorkFolder]:
    """Yield a new folder beside `output`; it is removed when the block ends, however it ends.

    What a killed process left there for the same output goes first.

    Raises:
        DataError: The disk is full; also where the block itself fills it.
    """
    output = output.resolve()  # where it is a link, its target's disk is the one with room
    try:
        with (
            temporary_folder(output, "-work") as path,
            contextlib.closing(WorkFolder(path)) as work,
        ):
            yield work
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise DataError(
            f"The disk that holds {output.parent} is full: preparing a log takes there about "
            "50 bytes an interaction for a while, and 25 to stay."
        ) from error
