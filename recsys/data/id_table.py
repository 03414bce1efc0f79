"""A hash table from 64-bit numbers to codes that is asked and filled by whole arrays."""

import numpy as np
from numpy.typing import NDArray

from recsys.data.hashing import spread_bits


class IdTable:
    """Codes of distinct numbers, in the order in which they were added: 0, 1, 2, ...

    Open addressing with linear probing; at most half of the slots are taken.
    """

    def __init__(self) -> None:
        self._size = 0
        self._reserve(2**10)

    def __len__(self) -> int:
        return self._size

    def find(self, keys: NDArray[np.int64]) -> NDArray[np.int32]:
        """Give the codes of keys: [N], int32, -1 where a key is unknown."""
        slots = self._home(keys)
        codes = self._codes[slots]
        open_ = np.flatnonzero((self._keys[slots] != keys) & (codes >= 0))
        while len(open_):
            slots[open_] = (slots[open_] + 1) & self._mask
            codes[open_] = self._codes[slots[open_]]
            open_ = open_[(self._keys[slots[open_]] != keys[open_]) & (codes[open_] >= 0)]
        return codes

    def add(self, keys: NDArray[np.int64]) -> None:
        """Add keys that are distinct and unknown."""
        if 2 * (self._size + len(keys)) > len(self._keys):
            taken = self._codes >= 0
            old_keys, old_codes = self._keys[taken], self._codes[taken]
            self._reserve(4 * (self._size + len(keys)))
            self._insert(old_keys, old_codes)
        codes = np.arange(self._size, self._size + len(keys), dtype=np.int32)
        self._insert(keys, codes)
        self._size += len(keys)

    def _insert(self, keys: NDArray[np.int64], codes: NDArray[np.int32]) -> None:
        slots = self._home(keys)
        while len(keys):
            free = self._codes[slots] < 0
            # Of several keys that want one slot the last stays; the others see that and go on.
            self._keys[slots[free]], self._codes[slots[free]] = keys[free], codes[free]
            waiting = self._codes[slots] != codes
            keys, codes = keys[waiting], codes[waiting]
            slots = (slots[waiting] + 1) & self._mask

    def _home(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        return (spread_bits(keys.view(np.uint64)) >> self._shift).view(np.int64)

    def _reserve(self, slots: int) -> None:
        bits = (slots - 1).bit_length()
        self._shift, self._mask = np.uint64(64 - bits), 2**bits - 1
        self._keys = np.zeros(2**bits, np.int64)
        self._codes = np.full(2**bits, -1, np.int32)
