"""Ids to rows and back, against a plain dictionary."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.data import Vocabulary
from recsys.foundations import DataError

IDS = st.lists(st.text(max_size=8), unique=True, min_size=1, max_size=30)


@given(ids=IDS, wanted=st.lists(st.text(max_size=8), max_size=40))
def test_looks_up_like_a_dictionary_however_many_are_wanted(
    ids: list[str], wanted: list[str]
) -> None:
    vocabulary = Vocabulary.from_ids(ids)
    places = {text: row for row, text in enumerate(ids)}
    for some in (wanted + ids, wanted[:1], ids[-1:]):
        assert vocabulary.rows(some).tolist() == [places.get(text, -1) for text in some]


@given(ids=IDS)
def test_gives_back_the_ids_of_the_rows(ids: list[str]) -> None:
    vocabulary = Vocabulary.from_ids(ids)
    assert vocabulary.ids_of(vocabulary.rows(ids[::-1])).to_pylist() == ids[::-1]


def test_keeps_ids_digit_for_digit_and_takes_slices_and_chunks() -> None:
    vocabulary = Vocabulary.from_ids(pa.array(["007", "7", "9007199254740993", "", "🎬 a"])[1:])
    assert vocabulary.ids.to_pylist() == ["7", "9007199254740993", "", "🎬 a"]
    wanted = pa.chunked_array([["007", "🎬 a"], [""]])
    assert vocabulary.rows(wanted).tolist() == [-1, 3, 2]
    assert vocabulary.rows(pa.array(["x", "7"])[1:]).tolist() == [0]


def test_null_and_unknown_ids_have_no_row() -> None:
    vocabulary = Vocabulary.from_ids(["a", "b", "c"])
    assert vocabulary.rows(pa.array([None, "b"], pa.string())).tolist() == [-1, 1]
    assert vocabulary.rows([]).tolist() == []
    assert Vocabulary.from_ids([]).rows(["a"]).tolist() == [-1]


def test_names_an_id_that_stands_twice() -> None:
    with pytest.raises(DataError, match="holds the id 'b' twice"):
        Vocabulary.from_ids(["a", "b", "b"])
    with pytest.raises(DataError, match="null id"):
        Vocabulary.from_ids(pa.array(["a", None]))


def test_refuses_rows_outside() -> None:
    with pytest.raises(DataError, match="outside the vocabulary of 2 ids"):
        Vocabulary.from_ids(["a", "b"]).ids_of(np.array([2]))
