"""Stable sorting against Python's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recsys.data.stable_order import run_starts, stable_order

SMALL = st.integers(-3, 3)
ANY = st.integers(-(2**63), 2**63 - 1)


@given(keys=st.lists(SMALL | ANY | st.sampled_from([-(2**63), 2**63 - 1])))
def test_equal_keys_keep_their_order(keys: list[int]) -> None:
    order = stable_order(np.array(keys, np.int64))
    assert order.tolist() == sorted(range(len(keys)), key=lambda place: keys[place])


@given(keys=st.lists(st.integers(0, 2**64 - 1)), narrow=st.lists(st.integers(-128, 127)))
def test_any_type_of_integers_is_sorted(keys: list[int], narrow: list[int]) -> None:
    for values, kind in ((keys, np.uint64), (narrow, np.int8)):
        order = stable_order(np.array(values, kind))
        assert order.tolist() == sorted(range(len(values)), key=values.__getitem__)


@given(rows=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=1))
def test_a_run_starts_where_some_key_changes(rows: list[tuple[int, int]]) -> None:
    starts = run_starts(*np.array(rows).T)
    expected = [place == 0 or rows[place] != rows[place - 1] for place in range(len(rows))]
    assert starts.tolist() == expected
