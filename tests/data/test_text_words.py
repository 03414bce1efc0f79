"""Texts as words: order and hashes against Python's own comparison."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from recsys.data.text_words import TextWords, hash_texts, order_of_texts

# Ties at 8 and 16 bytes, texts that end in zero bytes, and long ones that begin alike.
PIECES = st.lists(st.sampled_from(["a", "b", "\0", "é", "12345678", "x" * 16])).map("".join)
TEXTS = st.lists(PIECES)


def as_array(texts: list[str]) -> pa.LargeStringArray:
    return pa.array(["before", *texts, "after"], pa.large_string()).slice(1, len(texts))


@given(texts=TEXTS)
def test_order_is_that_of_the_bytes(texts: list[str]) -> None:
    expected = sorted(range(len(texts)), key=lambda place: (texts[place].encode(), place))
    assert order_of_texts(as_array(texts)).tolist() == expected


@given(texts=TEXTS)
def test_words_hold_the_bytes(texts: list[str]) -> None:
    words = TextWords(as_array(texts))
    for number in range(4):
        expected = [
            int.from_bytes(text.encode()[8 * number : 8 * number + 8], "little") for text in texts
        ]
        assert words.word(number).tolist() == expected


@given(texts=TEXTS, others=TEXTS)
def test_a_hash_depends_on_the_text_alone(texts: list[str], others: list[str]) -> None:
    alone = {text: hash_texts(as_array([text]))[0] for text in texts}
    together = hash_texts(as_array([*others, *texts]))[len(others) :]
    assert together.tolist() == [alone[text] for text in texts]
    assert len(set(alone.values())) == len(alone)


def test_many_texts_have_many_hashes() -> None:
    texts = pa.array([f"item {number}" for number in range(100_000)], pa.large_string())
    hashes = hash_texts(texts)
    assert len(set(hashes.tolist())) == 100_000
    # Each half of the bits is spread: the largest of 256 bins is near 391 (six deviations: 118).
    for shift in (56, 0):
        bins = [0] * 256
        for value in hashes.tolist():
            bins[value >> shift & 255] += 1
        assert max(bins) < 391 + 118
