"""Rows cut into blocks of one shape, so that a row's numbers depend on no other row.

Dimensions: N rows.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

BLOCK_SIZE = 512


def fixed_blocks(num_rows: int, block_size: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Give each block's start and its rows: [block_size], of 0 ... N - 1 and -1 behind them."""
    for start in range(0, num_rows, block_size):
        rows = np.arange(start, start + block_size)
        yield start, np.where(rows < num_rows, rows, -1)
