"""Sorting so that equal keys keep their order, several times faster than NumPy's stable sort."""

import numpy as np
from numpy.typing import NDArray


def stable_order(keys: NDArray[np.integer]) -> NDArray[np.int64]:
    """Give the positions that sort integers; of equal ones the earlier stands first.

    Key and position are packed into one 64-bit word, and the words are sorted.

    Args:
        keys: [N], any integers.

    Returns:
        [N], int64.
    """
    if len(keys) < 2:
        return np.arange(len(keys), dtype=np.int64)
    bits = len(keys).bit_length()
    lowest = int(keys.min())
    if (int(keys.max()) - lowest).bit_length() + bits <= 64:
        words = keys.astype(np.uint64)
        words -= np.uint64(lowest % 2**64)  # both wrap around, so that the difference is right
        positions = np.arange(len(keys), dtype=np.uint64)
    else:
        order = np.argsort(keys)
        words = _ranks(keys[order])
        positions = order.astype(np.uint64)
    words <<= np.uint64(bits)
    words |= positions
    words.sort()
    words &= np.uint64(2**bits - 1)
    return words.view(np.int64)


def run_starts(*keys: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Tell which of N rows differ from the row before them in some key; the first one does."""
    starts = np.zeros(len(keys[0]), bool)
    starts[:1] = True
    for key in keys:
        starts[1:] |= key[1:] != key[:-1]
    return starts


def _ranks(rising: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Number distinct values that stand in order: [N], from 0."""
    return np.cumsum(run_starts(rising), dtype=np.uint64) - np.uint64(1)
