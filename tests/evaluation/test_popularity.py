"""The popularity list against a walk down the catalogue."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.evaluation import PopularityList, popularity_deciles
from recsys.foundations import ArgumentError, Ragged


def make_ragged(lists: list[list[int]]) -> Ragged:
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return Ragged(offsets, np.array([row for one in lists for row in one], np.int64))


@given(
    counts=st.lists(st.integers(0, 4), min_size=1, max_size=12),
    data=st.data(),
    k=st.integers(1, 14),
)
def test_equals_a_walk_down_the_catalogue(counts: list[int], data: st.DataObject, k: int) -> None:
    row = st.integers(0, len(counts) - 1)
    exclude = data.draw(st.lists(st.lists(row, max_size=14), min_size=1, max_size=4))
    top = PopularityList(np.array(counts)).top(k, make_ragged(exclude))
    walk = sorted(range(len(counts)), key=lambda item: (-counts[item], item))
    for query, banned in enumerate(exclude):
        assert top[query].tolist() == [item for item in walk if item not in banned][:k]


@given(
    counts=st.lists(st.integers(0, 4), min_size=1, max_size=12),
    data=st.data(),
    k=st.integers(1, 14),
)
def test_gives_only_what_is_allowed(counts: list[int], data: st.DataObject, k: int) -> None:
    row = st.integers(0, len(counts) - 1)
    allowed = sorted(data.draw(st.sets(row)))
    exclude = data.draw(st.lists(st.lists(row, max_size=14), min_size=1, max_size=4))
    popular = PopularityList(np.array(counts), np.array(allowed, np.int64))
    top = popular.top(k, make_ragged(exclude))
    walk = sorted(allowed, key=lambda item: (-counts[item], item))
    for query, banned in enumerate(exclude):
        assert top[query].tolist() == [item for item in walk if item not in banned][:k]


def test_a_k_of_any_size_costs_no_more_than_the_catalogue() -> None:
    top = PopularityList(np.array([1, 3, 2])).top(2**62, make_ragged([[], [1]]))
    assert [top[0].tolist(), top[1].tolist()] == [[1, 2, 0], [2, 0]]


def test_k_below_1_is_refused() -> None:
    with pytest.raises(ArgumentError, match="`k` must be above 0"):
        PopularityList(np.array([1])).top(0, Ragged.empty(1))


def test_deciles_hold_equally_many_items_and_leave_out_cold_ones() -> None:
    counts = np.concatenate([np.arange(1, 21), [0, 0]])
    deciles = popularity_deciles(counts)
    assert np.bincount(deciles).tolist() == [2, *[2] * 10]
    assert deciles[:2].tolist() == [1, 1]
    assert deciles[18:].tolist() == [10, 10, 0, 0]
    assert popularity_deciles(np.zeros(3, np.int64)).tolist() == [0, 0, 0]
