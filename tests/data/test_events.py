"""What each event may know of its user, against a slow loop over the log."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.data import Events, FeatureSchema, FeatureTable, HistoryRanges, join_histories
from recsys.foundations import ArgumentError

LOGS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=30)


def make_events(users: list[int], times: list[int] | None) -> Events:
    """Make sorted events whose item is their position."""
    count = len(users)
    return Events(
        np.array(users, np.int64),
        np.arange(count, dtype=np.int64),
        None if times is None else np.array(times, np.int64),
        None,
        FeatureTable.missing(FeatureSchema(), count),
    )


def ends_of(events: Events, clock: str, ties: str) -> np.ndarray:
    ranges = HistoryRanges(events, clock=clock, ties=ties)
    starts, ends = ranges.of(np.arange(len(events)))
    assert starts.tolist() == np.searchsorted(events.users, events.users).tolist()
    return ends


@given(log=LOGS, ties=st.sampled_from(["include", "exclude"]))
def test_an_event_knows_exactly_what_its_user_did_before(
    log: list[tuple[int, int]], ties: str
) -> None:
    log = sorted(log)
    events = make_events([user for user, _ in log], [time for _, time in log])
    ends = ends_of(events, "time", ties)
    starts = np.searchsorted(events.users, events.users)
    for position, (user, time) in enumerate(log):
        before = [
            other
            for other in range(position)
            if log[other][0] == user and (ties == "include" or log[other][1] < time)
        ]
        history = events.items[starts[position] : ends[position]].tolist()
        assert history == before
        assert position not in history  # the positive never leaks into its own history


def test_without_an_order_the_end_is_that_of_the_user() -> None:
    events = make_events([0, 0, 2, 2, 2], None)
    assert ends_of(events, "none", "include").tolist() == [2, 2, 5, 5, 5]


def test_ties_worked_by_hand() -> None:
    events = make_events([0, 0, 0, 1, 1], [5, 5, 9, 9, 9])
    assert ends_of(events, "time", "include").tolist() == [0, 1, 2, 3, 4]
    assert ends_of(events, "order", "exclude").tolist() == [0, 0, 2, 3, 3]


def test_no_events_have_no_ends() -> None:
    for clock in ("time", "none"):
        assert ends_of(make_events([], []), clock, "exclude").tolist() == []


def test_refuses_an_unknown_rule() -> None:
    with pytest.raises(ArgumentError, match="`ties` must be one of include, exclude"):
        ends_of(make_events([0], [1]), "time", "maybe")


def test_groups_items_by_user_oldest_first_with_empty_lists() -> None:
    lists = make_events([0, 0, 2], [1, 2, 1]).by_user(4)
    assert [lists[user].tolist() for user in range(4)] == [[0, 1], [], [2], []]


def test_takes_events_in_the_order_given() -> None:
    taken = make_events([0, 0, 2], [1, 2, 1]).take(np.array([2, 0]))
    assert (taken.users.tolist(), taken.items.tolist(), len(taken)) == ([2, 0], [2, 0], 2)
    assert taken.timestamps is not None
    assert taken.timestamps.tolist() == [1, 1]


def test_parts_are_joined_oldest_first_with_times_worked_by_hand() -> None:
    # User 0 has 10 at 3 and 11 at 5 in the first part, 12 at 4 and 13 at 5 in the second, which
    # comes after 11; item 13 is no candidate below 13.
    first, second = make_events([0, 0, 2], [3, 5, 1]), make_events([0, 0], [4, 5])
    first = dataclasses.replace(first, items=np.array([10, 11, 7]))
    second = dataclasses.replace(second, items=np.array([12, 13]))
    lists, times = join_histories([first, second], "time", 3, 14)
    assert [lists[user].tolist() for user in range(3)] == [[10, 12, 11, 13], [], [7]]
    assert times is not None
    assert times.offsets.tolist() == lists.offsets.tolist()
    assert times.rows.tolist() == [3, 4, 5, 5, 1]
    lists, times = join_histories([first, second], "time", 3, 13)
    assert lists.rows.tolist() == [10, 12, 11, 7]
    assert times is not None
    assert times.rows.tolist() == [3, 4, 5, 1]


def test_an_order_joins_parts_and_tells_no_times() -> None:
    first, second = make_events([0, 0], [3, 5]), make_events([0], [4])
    lists, times = join_histories([first, second], "order", 1, 9)
    assert times is None
    assert lists[0].tolist() == [0, 0, 1]  # at 3, 4 (of the second part) and 5
    joined, none = join_histories([], "time", 2, 9)
    assert len(joined) == 2
    assert none is not None
    assert none.offsets.tolist() == [0, 0, 0]
    assert join_histories([], "none", 2, 9)[1] is None
