"""The recipe of text codes, followed step by step, against the codes themselves."""

import unicodedata
from collections import Counter
from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from recsys.data.text_hashing import hash_texts

MASK = 2**64 - 1


def mix(value: int) -> int:
    value = (value + 0x9E3779B97F4A7C15) & MASK
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & MASK
    return value ^ value >> 31


def code(gram: str, salt: int, num_buckets: int) -> int:
    total = sum(mix(ord(c)) * pow(0x9E3779B97F4A7C15, i, 2**64) for i, c in enumerate(gram)) & MASK
    return mix(mix(total) ^ (len(gram) * 0xD6E8FEB86659FD93 & MASK) ^ salt) % num_buckets


def codes(text: str, num_buckets: int) -> Counter[int]:
    plain = unicodedata.normalize("NFKD", text).lower()
    clean = "".join(
        c if unicodedata.category(c)[0] not in "PZ" and c > "\x1f" else " " for c in plain
    )
    words = clean.split()
    grams = [(word, 0) for word in words]
    grams += [(" ".join(pair), 1) for pair in pairwise(words)]
    for salt, width in enumerate((3, 4, 5), start=2):
        for word in words:
            around = f" {word} "
            grams += [(around[n : n + width], salt) for n in range(len(around) - width + 1)]
    return Counter(code(gram, salt, num_buckets) for gram, salt in grams)


@given(text=st.text("abcXYZ é-,.\t0189", max_size=30), num_buckets=st.integers(1, 50_000))
def test_the_recipe_gives_the_codes_of_texts(text: str, num_buckets: int) -> None:
    hashed = hash_texts(pa.array([text], pa.large_string()), num_buckets)
    assert Counter(hashed.rows.tolist()) == codes(text, num_buckets)
