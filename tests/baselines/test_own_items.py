"""What a user had, again: against a sum event by event, and a value worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.baselines import OwnItems, decayed_history_matrix
from recsys.foundations import ArgumentError, Ragged

LISTS = st.lists(st.lists(st.integers(0, 8), max_size=12), min_size=1, max_size=4)


def make_ragged(lists: list[list[int]]) -> Ragged:
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return Ragged(offsets, np.array([row for one in lists for row in one], np.int64))


@given(lists=LISTS, decay=st.sampled_from([1.0, 0.5, 0.125]), k=st.integers(1, 10), data=st.data())
def test_equals_a_sum_event_by_event(
    lists: list[list[int]], decay: float, k: int, data: st.DataObject
) -> None:
    banned = [data.draw(st.lists(st.integers(0, 8), max_size=3)) for _ in lists]
    allowed = data.draw(st.none() | st.sets(st.integers(0, 8)))
    rows = None if allowed is None else np.array(sorted(allowed), np.int64)
    top = OwnItems(9, decay=decay).top(make_ragged(lists), k, make_ragged(banned), rows)
    for user, history in enumerate(lists):
        scores = dict.fromkeys(history, 0.0)
        for age, item in enumerate(reversed(history)):
            scores[item] += decay**age  # powers of 2: the sums are exact
        order = sorted(scores, key=lambda item: (-scores[item], item))
        order = [item for item in order if item not in banned[user]]
        assert top[user].tolist() == [i for i in order if allowed is None or i in allowed][:k]


def test_frequency_and_recency_worked_by_hand() -> None:
    # Oldest first: 4, 4, 2, 7. By frequency 4 leads (2 events), then 2 and 7 by row. With 1/2 the
    # scores are 7: 1, 2: 1/2, 4: 1/4 + 1/8.
    histories = make_ragged([[4, 4, 2, 7]])
    nothing = Ragged.empty(1)
    assert OwnItems(9, decay=1.0).top(histories, 9, nothing)[0].tolist() == [4, 2, 7]
    assert OwnItems(9, decay=0.5).top(histories, 9, nothing)[0].tolist() == [7, 2, 4]
    scores = decayed_history_matrix(histories, 9, 0.5).toarray()
    assert scores.tolist() == [[0, 0, 0.5, 0, 0.375, 0, 0, 1, 0]]


@pytest.mark.parametrize("decay", [0.0, 1.5, float("nan")])
def test_a_decay_out_of_range_is_refused(decay: float) -> None:
    with pytest.raises(ArgumentError, match="`decay` must be above 0 and at most 1, got"):
        OwnItems(9, decay=decay).top(Ragged.empty(1), 1, Ragged.empty(1))
