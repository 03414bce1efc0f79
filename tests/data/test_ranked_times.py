"""Places of times against sorting all of them."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.data.ranked_times import RankedTimes

START = 1_600_000_000_000_000  # µs
# Near one another, far from one another, and both in one log.
TIMES = st.lists(st.one_of(st.integers(0, 5), st.integers(0, 10**15)), min_size=1, max_size=40)


@given(
    offsets=TIMES,
    bins=st.sampled_from([2, 7, 2**16]),
    at_once=st.sampled_from([0, 3, 100]),
    moment=st.integers(-1, 10**15),
)
def test_places_are_those_in_the_sorted_log(
    open_log: Any, offsets: list[int], bins: int, at_once: int, moment: int
) -> None:
    times = [START + offset for offset in offsets]
    ids = pa.array([str(number % 3) for number in range(len(times))], pa.large_string())
    table = pa.table({"user_id": ids, "item_id": ids, "timestamp": times})
    with pytest.MonkeyPatch.context() as patch, open_log(table) as opened:
        patch.setattr("recsys.data.ranked_times._BINS", bins)
        patch.setattr("recsys.data.ranked_times._TIMES_AT_ONCE", at_once)
        ranked = RankedTimes(opened.log)
        assert [ranked.at(place) for place in range(len(times))] == sorted(times)
        for cut in (START + moment, times[0], START - 1):
            assert ranked.count_before(cut) == sum(time < cut for time in times)
