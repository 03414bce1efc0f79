"""Vectors written a block at a time, so that they need not be in memory as a whole.

Dimensions: C vectors, D embedding width.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def write_blocks(path: Path, shape: tuple[int, int], blocks: Iterable[NDArray[np.float32]]) -> None:
    """Write vectors as float32 `.npy`, as `write_vectors` does.

    Args:
        path: The file; it is not written atomically.
        shape: (C, D).
        blocks: Consecutive vectors, C altogether.
    """
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in blocks:
            file.write(np.ascontiguousarray(block, "<f4").data)
