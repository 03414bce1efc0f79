"""The protocol of the next-word experiment, counted by hand, and logs that are no text."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recsys.benchmark import (
    NextWordData,
    Sentences,
    prepare_next_words,
    read_sentences,
    unigram_perplexity,
)
from recsys.foundations import ArgumentError, DataError, MissingFileError

# Ten sentences: eight in training, one for validation, one for test.
TEXT = [
    "the cat sat",
    "the cat",
    "stop",
    "the dog sat down",
    "a dog",
    "the the the",
    "cat a",
    "down",
    "the owl",
    "an owl sat",
]


def make_log(path: Path, text: list[str] = TEXT) -> Path:
    """Write a log of sentences, as CSV or Parquet by the name."""
    rows = [
        (f"s{number}", word, position)
        for number, sentence in enumerate(text)
        for position, word in enumerate(sentence.split())
    ]
    frame = pd.DataFrame(rows, columns=["user_id", "item_id", "timestamp"])
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    return path


def make_sentences(text: list[str]) -> Sentences:
    words = [word for sentence in text for word in sentence.split()]
    codes = {word: code for code, word in enumerate(dict.fromkeys(words))}
    owners = [number for number, sentence in enumerate(text) for _ in sentence.split()]
    return Sentences(np.array(owners), np.array([codes[word] for word in words]), len(codes))


def prepare(text: list[str] = TEXT, *, min_count: int, share: float = 0.1) -> NextWordData:
    return prepare_next_words(
        make_sentences(text), validation_share=share, test_share=share, min_count=min_count
    )


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_a_log_is_read_as_sentences_in_the_order_of_their_first_words(
    tmp_path: Path, name: str
) -> None:
    read, expected = read_sentences(make_log(tmp_path / name)), make_sentences(TEXT)
    assert read.owners.tolist() == expected.owners.tolist()
    assert read.words.tolist() == expected.words.tolist()
    assert (read.num_words, read.num_sentences) == (9, 10)


def test_words_stand_by_position_whatever_the_order_of_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = ["s2,c,7", "s1,b,2", "s1,a,1", "s2,a,-1", "s1,c,10", "s1,d,2"]
    path.write_text("user_id,item_id,timestamp\n" + "\n".join(rows) + "\n")
    read = read_sentences(path)  # words by first appearance: c 0, b 1, a 2, d 3
    assert read.owners.tolist() == [0, 0, 1, 1, 1, 1]
    assert read.words.tolist() == [2, 0, 2, 1, 3, 0]  # "a c", then "a b d c"


def test_every_word_has_a_row_of_its_own_with_a_minimum_of_one() -> None:
    data = prepare(min_count=1)
    assert data.describe() == {
        "num_words": 9,
        "num_rows": 9,
        "num_rare_words": 0,
        "train_sentences": 8,
        "train_words": 18,  # 3 + 2 + 1 + 4 + 2 + 3 + 2 + 1
        "train_examples": 10,  # less the first word of each of the eight
        "train_examples_of_unseen_words": 0,
        "validation_sentences": 1,
        "validation_words": 2,
        "validation_examples": 1,
        "validation_examples_of_unseen_words": 1,  # owl
        "test_sentences": 1,
        "test_words": 3,
        "test_examples": 2,
        "test_examples_of_unseen_words": 1,  # owl; sat is known, and `an` begins the sentence
    }
    # Words by first appearance: the cat sat stop dog down a owl an. Examples: cat sat; cat;
    # dog sat down; dog; the the; a.
    assert data.counts.tolist() == [2, 2, 2, 0, 2, 1, 1, 0, 0]
    assert data.test.targets.tolist() == [7, 2]


def test_rare_words_and_those_that_training_never_has_share_the_last_row() -> None:
    # In training: the 6, cat 3, sat 2, stop 1, dog 2, down 2, a 2; owl and an never.
    data = prepare(min_count=3)
    assert (data.num_words, data.num_rows, data.num_rare_words) == (9, 3, 7)
    assert data.train.events.items.tolist() == [
        0,
        1,
        2,
        0,
        1,
        2,
        0,
        2,
        2,
        2,
        2,
        2,
        0,
        0,
        0,
        1,
        2,
        2,
    ]
    assert data.counts.tolist() == [2, 2, 6]
    assert data.test.events.items.tolist() == [2, 2, 2]
    assert data.describe()["test_examples_of_unseen_words"] == 0


def test_the_parts_are_sentences_by_order_each_numbered_from_zero() -> None:
    data = prepare(min_count=1, share=0.3)
    assert data.train.events.users.tolist() == [0, 0, 0, 1, 1, 2, 3, 3, 3, 3]
    assert data.validation.events.users.tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert data.test.events.users.tolist() == [0, 1, 1, 2, 2, 2]
    assert data.train.examples.tolist() == [1, 2, 4, 7, 8, 9]
    assert data.test.examples.tolist() == [2, 4, 5]


def test_the_unigram_model_is_scored_as_worked_by_hand() -> None:
    # Ten examples; owl, stop and an count as half a one each: owl 0.5 / 11.5, sat 2 / 11.5.
    data = prepare(min_count=1)
    expected = (11.5 / 0.5 * 11.5 / 2) ** 0.5
    assert unigram_perplexity(data, data.test) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "part", "sentences"),
    [
        (["a b"] * 3, "validation", 3),
        ([], "train", 0),
        (["a b"] * 8 + ["a", "a b"], "validation", 10),
        (["a b"] * 9 + ["a"], "test", 10),
        (["a"] * 10, "train", 10),
    ],
)
def test_a_text_without_an_example_in_some_part_is_refused(
    text: list[str], part: str, sentences: int
) -> None:
    words = rf"got none in the {part} part \({sentences} sentences in all\)"
    with pytest.raises(DataError, match=words):
        prepare(text, min_count=1)


def test_a_minimum_below_one_is_refused() -> None:
    with pytest.raises(ArgumentError, match="`min_count` must be above 0, got 0"):
        prepare(min_count=0)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("user_id,item_id\n1,a\n", "has no column 'timestamp'; it has 'user_id', 'item_id'"),
        ("user_id,timestamp\n1,0\n", "has no column 'item_id'"),
        ("user_id,item_id,timestamp\n1,a,b\n", "row 1: column 'timestamp' holds 'b'"),
        ("user_id,item_id,timestamp\n1,a,0.5\n", "row 1: column 'timestamp' holds '0.5'"),
        ("user_id,item_id,timestamp\n1,,0\n", "row 1: column 'item_id' holds no value"),
        ("", "is empty"),
    ],
)
def test_a_bad_log_is_refused_in_one_sentence(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(content)
    with pytest.raises(DataError) as refusal:
        read_sentences(path)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert "dataset." not in str(refusal.value)  # no such setting here


def test_a_log_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"none\.parquet does not exist"):
        read_sentences(tmp_path / "none.parquet")
