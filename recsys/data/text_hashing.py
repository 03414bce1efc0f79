"""Texts as bags of hashed n-grams."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.data.hashing import SpanHashes
from recsys.foundations import Ragged

_TEXTS_AT_ONCE = 100_000  # bounds the memory of the n-grams' positions
_CHARACTERS = (3, 4, 5)


def hash_texts(texts: pa.LargeStringArray, num_buckets: int) -> Ragged:
    """Hash the n-grams of texts into buckets.

    The text is brought to Unicode's NFKD form (accents apart) and to lower case, and split into
    words at blanks and punctuation. Its n-grams are the words, pairs of neighbouring words, and the
    runs of 3, 4 and 5 characters inside a word, the blank on either side included. One that stands
    twice counts twice.

    Args:
        texts: [N]; null is like the empty text.
        num_buckets: Buckets; at least 1.

    Returns:
        N lists of int32 in [0, num_buckets); empty for a text without words.
    """
    parts = [
        _hash_some(texts.slice(start, _TEXTS_AT_ONCE), num_buckets)
        for start in range(0, max(len(texts), 1), _TEXTS_AT_ONCE)
    ]
    lengths = np.concatenate([part.lengths for part in parts])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Ragged(offsets, np.concatenate([part.rows for part in parts]))


def _hash_some(texts: pa.LargeStringArray, num_buckets: int) -> Ragged:
    points, ends = _code_points(texts)
    is_blank = points == ord(" ")
    blanks = np.flatnonzero(is_blank)  # one before and one after each word
    hashes = SpanHashes(points)
    starts, stops = blanks[:-1] + 1, blanks[1:]
    inside = stops > starts  # else: the blank that ends a text and the one that starts the next
    spans = [(starts[inside], stops[inside])]
    pairs = inside[:-1] & inside[1:]  # two words in a row, in one text
    spans.append((starts[:-1][pairs], stops[1:][pairs]))
    blanks_before = np.concatenate([[0], np.cumsum(is_blank)])
    for width in _CHARACTERS:
        first = np.arange(max(len(points) - width + 1, 0))
        crosses = blanks_before[first + width - 1] > blanks_before[first + 1]
        first = first[~crosses]
        spans.append((first, first + width))
    grams = [
        hashes.hash(first, last, salt) % np.uint64(num_buckets)
        for salt, (first, last) in enumerate(spans)
    ]
    owners = np.searchsorted(ends, np.concatenate([first for first, _ in spans]), side="right")
    return Ragged.from_pairs(owners, np.concatenate(grams).astype(np.int32), len(texts))


def _code_points(texts: pa.LargeStringArray) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Give the code points of all texts, each " word word ", and where each text ends: [N]."""
    clean = pc.utf8_lower(pc.utf8_normalize(pc.fill_null(texts, ""), form="NFKD"))
    clean = pc.replace_substring_regex(clean, pattern=r"[\s\pP\pZ\x00-\x1f]+", replacement=" ")
    clean = pc.utf8_trim_whitespace(clean)
    blank = pa.scalar(" ", pa.large_string())
    nothing = pa.scalar("", pa.large_string())
    clean = pc.if_else(
        pc.equal(clean, ""), "", pc.binary_join_element_wise(blank, clean, blank, nothing)
    )
    lengths = np.asarray(pc.utf8_length(clean).to_numpy(zero_copy_only=False), np.int64)
    joined = "".join(clean.to_pylist())
    points = np.frombuffer(joined.encode("utf-32-le"), np.uint32)
    return points, np.cumsum(lengths)
