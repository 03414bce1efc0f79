"""Different rows and their first places, against a walk along the list."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from recsys.sampling.unique_rows import first_places, unique_rows

ROWS = st.lists(st.integers(0, 9) | st.integers(0, 2**40), max_size=30)


@given(rows=ROWS)
def test_gives_each_row_once_in_order_with_its_count(rows: list[int]) -> None:
    unique, counts = unique_rows(torch.tensor(rows, dtype=torch.int64))
    assert unique.tolist() == sorted(set(rows))
    assert counts.tolist() == [rows.count(row) for row in sorted(set(rows))]


@given(rows=ROWS)
def test_first_places_are_those_where_a_row_was_not_seen_before(rows: list[int]) -> None:
    expected = [place for place, row in enumerate(rows) if row not in rows[:place]]
    assert first_places(torch.tensor(rows, dtype=torch.int64)).tolist() == expected
