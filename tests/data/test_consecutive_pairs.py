"""Pairs of neighbouring items, against the histories that training batches show."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.data import (
    EventBatches,
    Events,
    FeatureSchema,
    FeatureTable,
    consecutive_pairs,
)
from recsys.foundations import ArgumentError

LOGS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=25
)


def make_events(log: list[tuple[int, int, int]]) -> Events:
    """Make events of (user, time, item)."""
    users, times, items = np.array(sorted(log), np.int64).reshape(-1, 3).T
    return Events(users, items, times, None, FeatureTable.missing(FeatureSchema(), len(users)))


@given(
    log=LOGS,
    clock=st.sampled_from(["time", "order", "none"]),
    ties=st.sampled_from(["include", "exclude"]),
)
def test_the_pairs_are_the_newest_of_the_history_and_the_positive_of_a_training_epoch(
    log: list[tuple[int, int, int]], clock: str, ties: str
) -> None:
    events = make_events(log)
    batches = EventBatches(
        events, clock=clock, ties=ties, history_length=1, batch_size=7, drop_last=False, seed=0
    )
    expected = [
        (int(last), int(positive))
        for batch in batches.epoch(0)
        for last, positive in zip(batch.histories[:, 0], batch.positives, strict=True)
        if last >= 0
    ]
    previous, following = consecutive_pairs(events, clock, ties)
    assert sorted(zip(previous.tolist(), following.tolist(), strict=True)) == sorted(expected)


def test_worked_by_hand() -> None:
    # User 0: items 5, 7, 7 at times 1, 2, 2; user 1: item 9 alone; user 2: items 4, 5, 6.
    events = make_events(
        [(0, 1, 5), (0, 2, 7), (0, 2, 7), (1, 1, 9), (2, 1, 4), (2, 2, 5), (2, 3, 6)]
    )
    previous, following = consecutive_pairs(events, "time", "include")
    assert (previous.tolist(), following.tolist()) == ([5, 7, 4, 5], [7, 7, 5, 6])
    previous, following = consecutive_pairs(events, "time", "exclude")
    assert (previous.tolist(), following.tolist()) == ([5, 5, 4, 5], [7, 7, 5, 6])
    # Without an order each follows the next of its list: 7 before 5, 5 before the last 7; the two
    # sevens make no pair.
    previous, following = consecutive_pairs(events, "none", "include")
    assert (previous.tolist(), following.tolist()) == ([7, 5, 5, 6, 4], [5, 7, 4, 5, 6])


@pytest.mark.parametrize("clock", ["time", "none"])
def test_no_events_make_no_pairs(clock: str) -> None:
    previous, following = consecutive_pairs(make_events([]), clock, "include")
    assert (previous.tolist(), following.tolist()) == ([], [])


def test_refuses_an_unknown_clock() -> None:
    with pytest.raises(ArgumentError, match="`clock` must be one of time, order, none"):
        consecutive_pairs(make_events([(0, 0, 0)]), "sundial", "include")
