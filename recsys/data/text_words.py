"""Texts as 64-bit words: for hashing and comparing many at once, without Python per text."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.data.hashing import mix, spread_bits, string_buffers
from recsys.data.stable_order import run_starts, stable_order

_KEPT = np.array([2 ** (8 * count) - 1 for count in range(9)], np.uint64)  # of a word's 8 bytes
_TEXTS_AT_ONCE = 2**15  # with all that is computed of them they fit the caches


class TextWords:
    """The bytes of texts, eight at a time.

    Args:
        texts: [N], large_string without nulls.
    """

    def __init__(self, texts: pa.LargeStringArray) -> None:
        offsets, symbols = string_buffers(texts)
        padded = np.concatenate([symbols, np.zeros(8, np.uint8)])
        self._starts, self._end = offsets[:-1], len(symbols)
        self._loads = np.ndarray(len(symbols) + 1, "<u8", padded, strides=(1,))
        self.lengths = np.diff(offsets)

    def word(
        self, number: int, rows: NDArray[np.int64] | slice = slice(None)
    ) -> NDArray[np.uint64]:
        """Give bytes 8 * number to 8 * number + 7 of texts, the first one lowest.

        Args:
            number: From 0.
            rows: [M], which texts.

        Returns:
            [M], uint64; bytes past the end of a text are 0.
        """
        places = np.minimum(self._starts[rows] + 8 * number, self._end)
        left = np.clip(self.lengths[rows] - 8 * number, 0, 8)
        found: NDArray[np.uint64] = self._loads[places] & _KEPT[left]
        return found


def hash_texts(texts: pa.LargeStringArray) -> NDArray[np.uint64]:
    """Hash each text of a large_string array without nulls: [N], uint64.

    The same text has the same hash wherever it stands.
    """
    hashes = np.empty(len(texts), np.uint64)
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        some = texts.slice(start, _TEXTS_AT_ONCE)
        hashes[start : start + len(some)] = _hash_some(some)
    return hashes


def _hash_some(texts: pa.LargeStringArray) -> NDArray[np.uint64]:
    words = TextWords(texts)
    hashes = spread_bits(words.lengths.astype(np.uint64))  # a length and the first byte stay apart
    longest = int(words.lengths.max())
    rows: NDArray[np.int64] | slice = slice(None)  # that reach so far
    for number in range(-(-longest // 8)):
        reaching = words.lengths[rows] > 8 * number
        if not reaching.all():
            found = np.flatnonzero(reaching)
            rows = found if isinstance(rows, slice) else rows[found]
        mixed = spread_bits(hashes[rows] ^ words.word(number, rows))
        hashes[rows] = mixed ^ (mixed >> np.uint64(29))
    return mix(hashes)


def order_of_texts(texts: pa.LargeStringArray) -> NDArray[np.int64]:
    """Give the positions that sort texts by their bytes; equal ones stay in their order.

    Args:
        texts: [N], large_string without nulls.

    Returns:
        [N], int64.
    """
    words = TextWords(texts)
    first = words.word(0).byteswap()  # then the order of the numbers is that of the bytes
    order = stable_order(first)
    starts = np.append(run_starts(first[order]), True)  # the last one is behind all
    tied = np.arange(len(texts))
    longest = int(words.lengths.max()) if len(texts) else 0
    for number in range(1, -(-longest // 8) + 1):
        tied = tied[~(starts[tied] & starts[tied + 1])]
        if not len(tied):
            break
        rows = order[tied]
        last = 8 * number >= longest  # all bytes are compared: texts that end in zero bytes differ
        keys: NDArray[np.integer] = (
            words.lengths[rows] if last else words.word(number, rows).byteswap()
        )
        groups: NDArray[np.int64] = np.cumsum(starts[tied], dtype=np.int64)
        within = stable_order(keys)
        within = within[stable_order(groups[within])]
        order[tied] = rows[within]
        starts[tied] = run_starts(groups, keys[within])
    return order
