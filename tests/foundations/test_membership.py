"""Membership and distinct values against Python's sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recsys.foundations import is_among, sorted_distinct

NUMBERS = st.lists(st.integers(-5, 12), max_size=30)


@given(values=NUMBERS, known=NUMBERS)
def test_tells_what_a_set_tells(values: list[int], known: list[int]) -> None:
    found = is_among(np.array(values, np.int64), np.array(known, np.int32))
    assert found.dtype == np.bool_
    assert found.tolist() == [value in set(known) for value in values]


@given(values=NUMBERS)
def test_gives_each_value_once_in_rising_order(values: list[int]) -> None:
    found = sorted_distinct(np.array(values, np.int32))
    assert found.dtype == np.int32
    assert found.tolist() == sorted(set(values))
