"""The newest values of ranges against a slow loop."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recsys.data.newest_values import NewestValues


@given(
    num_values=st.integers(1, 40),
    width=st.integers(0, 50),
    narrower=st.integers(0, 50),
    seed=st.integers(0, 2**16),
)
def test_gives_each_range_backwards_and_pads_it(
    num_values: int, width: int, narrower: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 1000, num_values).astype(np.int32)
    values.flags.writeable = False
    ends = rng.integers(0, num_values + 1, 12)
    lengths = rng.integers(0, ends + 1)
    columns = min(narrower, width)
    taken = NewestValues(values, width=width, padding=-7).take(ends, lengths, columns)
    assert taken.dtype == np.int64
    for row, end, length in zip(taken, ends, lengths, strict=True):
        mine = values[end - length : end][::-1].tolist()[:columns]
        assert row.tolist() == mine + [-7] * (columns - len(mine))


def test_takes_the_full_width_unless_told_otherwise() -> None:
    newest = NewestValues(np.arange(10), width=4, padding=-1)
    assert newest.take(np.array([3, 9]), np.array([2, 9])).tolist() == [
        [2, 1, -1, -1],
        [8, 7, 6, 5],
    ]


def test_times_beyond_int32_stay_whole() -> None:
    newest = NewestValues(np.array([2**40, 2**41, 2**42]), width=2, padding=-(2**63))
    taken = newest.take(np.array([1, 3]), np.array([1, 2]))
    assert taken.tolist() == [[2**40, -(2**63)], [2**42, 2**41]]
