"""Filters against slow loops over the rows."""

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.data import FilterSettings
from recsys.foundations import ConfigError, DataError

Row = tuple[int, int, int]  # user, item, time
ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=60
)


def make_table(rows: list[Row], weights: list[float] | None = None) -> pa.Table:
    columns: dict[str, Any] = {
        "user_id": pa.array([f"u{user}" for user, _, _ in rows], pa.large_string()),
        "item_id": pa.array([f"i{item}" for _, item, _ in rows], pa.large_string()),
        "timestamp": pa.array([time for _, _, time in rows], pa.int64()),
    }
    if weights is not None:
        columns["weight"] = pa.array(weights, pa.float32())
    return pa.table(columns)


def rows_of(opened: Any) -> list[Row]:
    users = [int(text[1:]) for text in opened.column("user")]
    items = [int(text[1:]) for text in opened.column("item")]
    return list(zip(users, items, opened.column("timestamp"), strict=True))


@given(rows=ROWS)
def test_keeps_the_first_or_last_row_of_a_pair(open_log: Any, rows: list[Row]) -> None:
    for rule, pick in (("keep_first", min), ("keep_last", max)):
        places: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for place, (user, item, time) in enumerate(rows):
            places.setdefault((user, item), []).append((time, place))
        kept = sorted(pick(found)[1] for found in places.values())
        with open_log(make_table(rows), duplicates=rule) as opened:
            assert rows_of(opened) == [rows[place] for place in kept]
            assert opened.column("row") == kept
            report = opened.reports[0]
        assert report["removed_rows"] == len(rows) - len(kept)
        assert report["repeated_rows"] == len(rows) - len(kept)
        assert report["exact_repeats"] == len(rows) - len(set(rows))


@given(rows=ROWS)
def test_rows_stand_by_user_then_time_then_input_order(open_log: Any, rows: list[Row]) -> None:
    with open_log(make_table(rows)) as opened:
        log = opened.log
        numbers = log.columns["row"].map().tolist()
        times = log.columns["timestamp"].map().tolist()
        assert times == [rows[number][2] for number in numbers]
        assert sorted(numbers) == list(range(len(rows)))
        ends = log.counts.cumsum().tolist()
        for first, end in zip([0, *ends], ends, strict=False):
            own = list(zip(times[first:end], numbers[first:end], strict=True))
            assert own == sorted(own)
            assert len({rows[number][0] for number in numbers[first:end]}) == 1


@given(rows=ROWS, users=st.integers(1, 4), items=st.integers(1, 4))
def test_too_few_interactions_are_dropped_until_all_have_enough(
    open_log: Any, rows: list[Row], users: int, items: int
) -> None:
    left, rounds = list(rows), 0
    while True:
        by_user, by_item = Counter(r[0] for r in left), Counter(r[1] for r in left)
        kept = [r for r in left if by_user[r[0]] >= users and by_item[r[1]] >= items]
        if kept == left:
            break
        left, rounds = kept, rounds + 1
    settings = {"min_user_interactions": users, "min_item_interactions": items}
    if not left:
        with (
            pytest.raises(DataError, match="No interaction is left"),
            open_log(make_table(rows), **settings),
        ):
            pass
        return
    with open_log(make_table(rows), **settings) as opened:
        assert rows_of(opened) == left
        report = opened.reports[1]
        assert opened.log.time_range == (min(r[2] for r in left), max(r[2] for r in left))
    assert (report["removed_rows"], report["rounds"]) == (len(rows) - len(left), rounds)
    assert report["users"] == len({row[0] for row in left})
    assert report["items"] == len({row[1] for row in left})


def test_sums_the_weights_of_a_pair_at_its_first_row(open_log: Any) -> None:
    rows = [(0, 0, 9), (0, 1, 1), (0, 0, 2), (1, 0, 5)]
    table = make_table(rows, [1.0, 2.0, 0.5, 4.0])
    with open_log(table, duplicates="sum_weights") as opened:
        assert rows_of(opened) == [(0, 1, 1), (0, 0, 2), (1, 0, 5)]
        assert opened.column("weight") == [2.0, 1.5, 4.0]
    with open_log(make_table(rows), duplicates="sum_weights") as opened:  # each row counts 1
        assert opened.column("weight") == [1.0, 2.0, 1.0]
    with open_log(make_table(rows[1:]), duplicates="sum_weights") as opened:  # nothing to sum up
        assert not opened.log.has("weight")


@pytest.mark.parametrize(
    ("exclude_seen", "rule", "left"), [(True, "keep_first", 1), (False, "keep_all", 2)]
)
def test_repeats_stay_where_they_are_the_point(
    open_log: Any, exclude_seen: bool, rule: str, left: int
) -> None:
    table = make_table([(0, 0, 1), (0, 0, 2)])
    with open_log(table, duplicates="auto", exclude_seen=exclude_seen) as opened:
        assert (len(opened.log), opened.reports[0]["rule"]) == (left, rule)
        assert opened.log.distinct_pairs == exclude_seen


def test_given_parts_are_made_unique_apart_and_only_training_is_thinned(open_log: Any) -> None:
    parts = {
        "train": make_table([(0, 0, 1), (0, 0, 2), (1, 1, 1)]),
        "test": make_table([(0, 0, 3), (0, 0, 3)]),
    }
    with open_log(parts, duplicates="keep_first") as opened:
        assert opened.column("row") == [0, 2, 3]
        assert not opened.log.distinct_pairs  # one stands in both parts
    with open_log(parts, min_user_interactions=2) as opened:
        assert opened.column("row") == [0, 1, 3, 4]


def test_refuses_what_cannot_be(open_log: Any) -> None:
    with pytest.raises(ConfigError, match="`min_user_interactions` must be at least 1, got 0"):
        FilterSettings(min_user_interactions=0)
    with pytest.raises(ConfigError, match="`duplicates` must be one of auto, keep_first"):
        FilterSettings(duplicates="drop")
    with pytest.raises(DataError, match="no usable row"), open_log(make_table([])):
        pass
    wrong = make_table([(0, 0, 0), (1, 1, 1)], [1.0, -2.0])
    with (
        pytest.raises(DataError, match=r"at least 0; 1 rows are not, the first holds -2\.0"),
        open_log(wrong),
    ):
        pass
