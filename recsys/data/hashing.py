"""Hashes of many texts at once: the same on every machine and in every process.

A text's hash is that of a polynomial in its symbols, taken modulo 2**64 and mixed, so that every
substring's hash follows from prefix sums and no Python runs per text.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_BASE = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio; odd, so that it has an inverse
_INVERSE = pow(_BASE, -1, 2**64)


def spread_bits(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread 64-bit numbers by one multiplication (Fibonacci hashing), element by element.

    The high bits of the result depend on all bits, the low ones on low bits alone.
    """
    return values * np.uint64(_BASE)


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread the bits of 64-bit numbers (the finaliser of SplitMix64), element by element."""
    mixed = values + np.uint64(_BASE)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


class SpanHashes:
    """Hashes of spans of one long symbol sequence; equal spans have equal hashes.

    Args:
        symbols: [M], integers that are not negative: bytes or code points.
    """

    def __init__(self, symbols: NDArray[np.integer]) -> None:
        powers = _powers(_BASE, len(symbols))
        terms = mix(symbols.astype(np.uint64)) * powers
        self._sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
        self._inverse_powers = _powers(_INVERSE, len(symbols) + 1)

    def hash(
        self, starts: NDArray[np.int64], ends: NDArray[np.int64], salt: int = 0
    ) -> NDArray[np.uint64]:
        """Hash ``symbols[start:end]`` for each pair of positions; a salt gives another family."""
        sums = (self._sums[ends] - self._sums[starts]) * self._inverse_powers[starts]
        lengths = (ends - starts).astype(np.uint64)
        return mix(mix(sums) ^ (lengths * np.uint64(0xD6E8FEB86659FD93)) ^ np.uint64(salt))


def _powers(base: int, count: int) -> NDArray[np.uint64]:
    factors = np.full(count, base, np.uint64)
    factors[:1] = 1
    return np.multiply.accumulate(factors)


def string_buffers(texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Give the offsets [N + 1] and the bytes of a large_string array without nulls."""
    _, offsets_buffer, bytes_buffer = texts.buffers()
    if len(texts) == 0 or offsets_buffer is None:
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    window = slice(texts.offset, texts.offset + len(texts) + 1)
    offsets = np.frombuffer(offsets_buffer, np.int64)[window]
    whole = np.zeros(0, np.uint8) if bytes_buffer is None else np.frombuffer(bytes_buffer, np.uint8)
    return offsets - offsets[0], whole[offsets[0] : offsets[-1]]
