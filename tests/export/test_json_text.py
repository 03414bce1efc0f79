"""Columns as JSON text, against Python's own reader."""

import json
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.export.exported_items import plain
from recsys.export.json_text import joined_lines, json_objects, json_values, json_vectors

TEXTS = st.text(st.characters(codec="utf-8"))
INTEGERS = st.integers(-(2**63), 2**63 - 1)


def read(texts: pa.LargeStringArray) -> list[Any]:
    return [None if text is None else json.loads(text) for text in texts.to_pylist()]


@given(st.lists(st.none() | TEXTS))
def test_texts_come_back(values: list[str | None]) -> None:
    texts = json_values("c", pa.array(values, pa.string()))
    assert read(texts) == values
    assert not any(
        text and set(text) & {chr(code) for code in range(32)} for text in texts.to_pylist()
    )


@given(st.lists(st.none() | INTEGERS))
def test_integers_keep_every_digit(values: list[int | None]) -> None:
    assert read(json_values("c", pa.array(values, pa.int64()))) == values


@given(st.lists(st.none() | st.floats()))
def test_floats_come_back_and_what_json_lacks_is_null(values: list[float | None]) -> None:
    found = read(json_values("c", pa.array(values, pa.float64())))
    expected = [x if x is not None and np.isfinite(x) else None for x in values]
    assert found == expected
    assert all(isinstance(x, float) for x in found if x is not None)


@given(st.lists(st.none() | st.lists(st.none() | TEXTS)), st.integers(0, 3))
def test_lists_come_back_without_nulls(lists: list[Any], start: int) -> None:
    column = pa.array(lists, pa.list_(pa.string())).slice(start)
    expected = [None if one is None else [x for x in one if x is not None] for one in lists[start:]]
    assert read(json_values("c", column)) == expected


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_vectors_come_back_bit_by_bit(numbers: list[float]) -> None:
    vectors = np.array([numbers, numbers[::-1]], np.float32)
    for text, vector in zip(json_vectors(vectors).to_pylist(), vectors, strict=True):
        # Read as engines do: to a double, then rounded to a float.
        found = [struct.pack("f", float(x)) for x in json.loads(text, parse_int=float)]
        assert found == [struct.pack("f", x) for x in vector]


@pytest.mark.parametrize("kind", [pa.list_(pa.bool_(), 2), pa.large_list(pa.bool_())])
def test_lists_of_other_forms(kind: pa.DataType) -> None:
    column = pa.array([[True, False], None, [None, True]], kind)
    assert read(json_values("c", plain(column))) == [[True, False], None, [True]]


def test_an_object_has_no_key_without_a_value() -> None:
    fields = {
        'k"': pa.array(["1", "2", "3"], pa.large_string()),
        "é": pa.array(['"x"', "[]", None], pa.large_string()),
    }
    objects = json_objects(fields)
    assert read(objects) == [{'k"': 1, "é": "x"}, {'k"': 2, "é": []}, {'k"': 3}]
    assert joined_lines("<", objects, ">").to_pylist()[2] == '<{"k\\"":3}>'


def test_durations_and_times_of_the_day() -> None:
    took = pa.array([1, None], pa.duration("s"))
    assert read(json_values("c", took)) == [1_000_000, None]
    at = pa.array([3_723, None], pa.time32("s"))
    assert read(json_values("c", at)) == ["01:02:03", None]


def test_the_first_and_the_last_year_are_written() -> None:
    ends = pa.array([-62_135_596_800, 253_402_300_799], pa.timestamp("s"))
    assert read(json_values("c", ends)) == ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]
