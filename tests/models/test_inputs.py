"""Histories as blocks, and batches cut out of query inputs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.data import NO_TIME, FeatureSchema, FeatureTable, HistoryPlaces
from recsys.foundations import ArgumentError, Ragged, ShapeError
from recsys.models import QueryInputs, pad_histories


def make_ragged(lists: list[list[int]]) -> Ragged:
    offsets = np.cumsum([0] + [len(items) for items in lists]).astype(np.int64)
    return Ragged(offsets, np.array([item for items in lists for item in items], dtype=np.int32))


def make_inputs(num_queries: int = 3, **more: Any) -> QueryInputs:
    nothing = FeatureTable.missing(FeatureSchema(), num_queries)
    histories = np.arange(num_queries * 2).reshape(num_queries, 2)
    return QueryInputs(np.arange(num_queries) + 10, histories, nothing, nothing, **more)


def make_places(rows: list[int], skipped: list[int]) -> HistoryPlaces:
    return HistoryPlaces(np.array(rows), np.array(skipped))


def test_histories_become_newest_first_blocks() -> None:
    padded = pad_histories(make_ragged([[1, 2, 3], [], [4]]), 2)
    assert padded.tolist() == [[3, 2], [-1, -1], [4, -1]]
    assert padded.dtype == np.int64


@given(
    lists=st.lists(st.lists(st.integers(0, 99), max_size=6), max_size=5),
    length=st.integers(0, 8),
)
def test_every_block_equals_the_reversed_list(lists: list[list[int]], length: int) -> None:
    padded = pad_histories(make_ragged(lists), length)
    expected = [(items[::-1] + [-1] * length)[:length] for items in lists]
    assert padded.tolist() == expected
    assert padded.shape == (len(lists), length)


def test_taking_queries_keeps_the_order_and_leaves_absent_ones_unknown() -> None:
    taken = make_inputs().take(np.array([2, -1, 0]))
    assert taken.user_rows.tolist() == [12, -1, 10]
    assert taken.histories.tolist() == [[4, 5], [-1, -1], [0, 1]]
    assert len(taken) == len(taken.features) == len(taken.context) == 3


@pytest.mark.parametrize(("length", "expected"), [(1, [0]), (3, [0, 1, -1]), (0, [])])
def test_histories_are_cut_or_padded_to_a_length(length: int, expected: list[int]) -> None:
    assert make_inputs().with_history_length(length).histories[0].tolist() == expected


def test_times_go_along_with_the_histories() -> None:
    inputs = make_inputs(times=np.array([[40, 30], [20, 10], [6, 5]]))
    taken = inputs.take(np.array([2, -1])).times
    assert taken is not None
    assert taken.tolist() == [[6, 5], [NO_TIME, NO_TIME]]
    for length, expected in ((1, [40]), (3, [40, 30, NO_TIME])):
        times = inputs.with_history_length(length).times
        assert times is not None
        assert times[0].tolist() == expected
    assert make_inputs().take(np.array([0])).times is None


def test_queries_that_share_histories_are_not_taken_apart() -> None:
    inputs = make_inputs(places=make_places([0, 1, 1], [0, 1, 2]))
    with pytest.raises(ArgumentError, match="`places` must be None outside training"):
        inputs.take(np.array([0]))
    with pytest.raises(ArgumentError, match="`places` must be None outside training"):
        inputs.with_history_length(1)


def test_parts_of_different_lengths_are_refused_by_name() -> None:
    whole = make_inputs()
    shorter = FeatureTable.missing(FeatureSchema(), 2)
    with pytest.raises(ShapeError, match="`context` must have 3 rows, got 2"):
        QueryInputs(whole.user_rows, whole.histories, whole.features, shorter)
    with pytest.raises(ShapeError, match=r"`histories` must have shape \[3, any\], got \[2, 2\]"):
        QueryInputs(whole.user_rows, whole.histories[:2], whole.features, whole.context)
    with pytest.raises(ShapeError, match=r"`times` must have shape \[3, 2\], got \[3, 1\]"):
        make_inputs(times=np.zeros((3, 1), np.int64))
    with pytest.raises(ShapeError, match=r"`places.skipped` must have shape \[3\], got \[1\]"):
        make_inputs(places=make_places([0, 0, 1], [1]))
