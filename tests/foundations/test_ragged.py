"""Ragged lists against lists of lists."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recsys.foundations import Ragged

LISTS = st.lists(st.lists(st.integers(0, 9), max_size=5), max_size=8)


def make_ragged(lists: list[list[int]]) -> Ragged:
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return Ragged(offsets, np.array([row for rows in lists for row in rows], np.int64))


def as_lists(ragged: Ragged) -> list[list[int]]:
    return [ragged[place].tolist() for place in range(len(ragged))]


@given(lists=LISTS)
def test_holds_its_lists(lists: list[list[int]]) -> None:
    ragged = make_ragged(lists)
    assert as_lists(ragged) == lists
    assert ragged.lengths.tolist() == [len(rows) for rows in lists]
    owners = [place for place, rows in enumerate(lists) for _ in rows]
    assert ragged.owners().tolist() == owners


@given(lists=LISTS.filter(bool), data=st.data())
def test_takes_and_slices_lists(lists: list[list[int]], data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=10))
    taken = make_ragged(lists).take(np.array(places, np.int64))
    assert as_lists(taken) == [lists[place] for place in places]
    start = data.draw(st.integers(0, len(lists)))
    stop = data.draw(st.integers(start, len(lists)))
    sliced = make_ragged(lists).slice(start, stop)
    assert as_lists(sliced) == lists[start:stop]
    assert sliced.offsets[0] == 0


@given(pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=30))
def test_groups_pairs_in_their_order(pairs: list[tuple[int, int]]) -> None:
    owners, rows = (np.array([pair[at] for pair in pairs], np.int64) for at in (0, 1))
    grouped = Ragged.from_pairs(owners, rows, 7)
    assert as_lists(grouped) == [[row for o, row in pairs if o == owner] for owner in range(7)]


def test_empty_lists() -> None:
    assert as_lists(Ragged.empty(3)) == [[], [], []]
    assert as_lists(Ragged.empty(0)) == []
