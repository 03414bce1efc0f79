"""What users had in several parts, against a slow loop; block by block the same as at once."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.data import Events, FeatureSchema, FeatureTable, join_histories
from recsys.data.ranges_of_parts import RangesOfParts

NUM_USERS, NUM_ITEMS = 7, 9
# (user, time, item); items from 9 on are no candidates
PARTS = st.lists(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4), st.integers(0, 11)), max_size=15),
    min_size=1,
    max_size=3,
)


def make_events(log: list[tuple[int, int, int]], *, timed: bool = True) -> Events:
    log = sorted(log, key=lambda event: event[:2])
    users, times, items = np.array(log, np.int64).reshape(-1, 3).T
    context = FeatureTable.missing(FeatureSchema(), len(log))
    return Events(
        users.astype(np.int32), items.astype(np.int32), times if timed else None, None, context
    )


def slow_lists(
    parts: list[Events], users: list[int], *, by_time: bool
) -> list[list[tuple[int, int]]]:
    """Give (item, time) of each user's events."""
    lists = []
    for user in users:
        mine = []
        for number, part in enumerate(parts):
            times = part.timestamps if part.timestamps is not None else np.zeros(len(part), int)
            for place in np.flatnonzero(part.users == user):
                key = (times[place] if by_time else 0, number, place)
                mine.append((key, int(part.items[place]), int(times[place])))
        lists.append([(item, time) for _, item, time in sorted(mine) if item < NUM_ITEMS])
    return lists


@given(
    logs=PARTS,
    timed=st.lists(st.booleans(), min_size=3, max_size=3),
    clock=st.sampled_from(["time", "order", "none"]),
    asked=st.none() | st.sets(st.integers(0, NUM_USERS - 1)),
    events_at_once=st.integers(1, 40),
)
def test_lists_are_those_of_a_slow_loop_in_blocks_of_any_size(
    logs: Any, timed: list[bool], clock: str, asked: set[int] | None, events_at_once: int
) -> None:
    parts = [make_events(log, timed=has) for log, has in zip(logs, timed, strict=False)]
    users = None if asked is None else np.array(sorted(asked), np.int64)
    lists, times = join_histories(
        parts, clock, NUM_USERS, NUM_ITEMS, users=users, events_at_once=events_at_once
    )
    is_timed = all(part.timestamps is not None for part in parts)
    wanted = slow_lists(
        parts, list(range(NUM_USERS)) if asked is None else sorted(asked), by_time=is_timed
    )
    assert [one.tolist() for one in map(lists.__getitem__, range(len(lists)))] == [
        [item for item, _ in one] for one in wanted
    ]
    assert (times is not None) == (clock == "time" and is_timed)
    if times is not None:
        assert times.offsets.tolist() == lists.offsets.tolist()
        assert times.rows.tolist() == [time for one in wanted for _, time in one]


def test_the_lists_of_one_part_of_candidates_are_its_own_columns() -> None:
    events = make_events([(0, 1, 2), (0, 2, 3), (5, 0, 8)])
    lists, times = join_histories([events], "time", NUM_USERS, NUM_ITEMS)
    assert lists.rows is events.items
    assert times is not None
    assert times.rows is events.timestamps


@pytest.mark.parametrize(
    ("most", "wanted"),
    [
        (1, [(0, 1), (1, 2), (2, 3), (3, 5)]),
        (4, [(0, 2), (2, 3), (3, 5)]),
        (100, [(0, 5)]),
    ],
)
def test_blocks_worked_by_hand(most: int, wanted: list[tuple[int, int]]) -> None:
    # Users 0 to 4 have 2, 2, 9, 0 and 1 events in two parts together.
    log = [(0, 0, 0), (1, 0, 0), *[(2, 0, 0)] * 4, (4, 0, 0)]
    more = [(0, 0, 0), (1, 0, 0), *[(2, 0, 0)] * 5]
    ranges = RangesOfParts.of([make_events(log), make_events(more)], 5)
    assert ranges.num_events == 14
    assert [(block.start, block.stop) for block in ranges.blocks(most)] == wanted
