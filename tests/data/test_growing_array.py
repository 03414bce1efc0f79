"""An array that grows holds what a list holds, and moves seldom."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recsys.data.growing_array import GrowingArray


@given(blocks=st.lists(st.lists(st.integers(-(2**31), 2**31 - 1))))
def test_holds_what_was_added_and_its_views_stay(blocks: list[list[int]]) -> None:
    array, whole, views = GrowingArray(np.int32), list[int](), []
    for block in blocks:
        array.append(np.array(block, np.int64))
        whole += block
        views.append((array.values, list(whole)))
    assert len(array) == len(whole)
    assert array.values.dtype == np.int32
    for view, wanted in views:
        assert view.tolist() == wanted


def test_moves_as_often_as_its_length_doubles() -> None:
    array, places = GrowingArray(np.int64), set()
    for number in range(2**12):
        array.append(np.array([number]))
        places.add(array.values.__array_interface__["data"][0])
    assert len(places) <= 13  # with room for 1, 2, 4, ... 2^12 values
