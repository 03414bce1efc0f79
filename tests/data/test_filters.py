"""Filters against slow loops over the rows."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.data import FilterSettings
from recsys.data.coded_log import CodedLog, code_log
from recsys.data.filters import filter_log
from recsys.foundations import ConfigError, DataError

Row = tuple[int, int, int]  # user, item, time
ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3)), min_size=1)


def make_log(rows: list[Row], weights: list[float] | None = None) -> CodedLog:
    columns: dict[str, Any] = {
        "user_id": pa.array([f"u{user}" for user, _, _ in rows], pa.large_string()),
        "item_id": pa.array([f"i{item}" for _, item, _ in rows], pa.large_string()),
        "timestamp": pa.array([time for _, _, time in rows], pa.int64()),
    }
    if weights is not None:
        columns["weight"] = pa.array(weights, pa.float32())
    return code_log(pa.table(columns))


def rows_of(log: CodedLog) -> list[Row]:
    assert log.timestamps is not None
    users = [int(text[1:]) for text in log.user_ids.take(pa.array(log.users)).to_pylist()]
    items = [int(text[1:]) for text in log.item_ids.take(pa.array(log.items)).to_pylist()]
    return list(zip(users, items, log.timestamps.tolist(), strict=True))


def apply(log: CodedLog, **settings: Any) -> tuple[CodedLog, list[dict[str, Any]]]:
    return filter_log(log, FilterSettings(**settings), exclude_seen=True)


@given(rows=ROWS)
def test_keeps_the_first_or_last_row_of_a_pair_in_input_order(rows: list[Row]) -> None:
    for rule, pick in (("keep_first", min), ("keep_last", max)):
        places: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for place, (user, item, time) in enumerate(rows):
            places.setdefault((user, item), []).append((time, place))
        kept = sorted(pick(found)[1] for found in places.values())
        log, reports = apply(make_log(rows), duplicates=rule)
        assert rows_of(log) == [rows[place] for place in kept]
        assert log.input_rows.tolist() == kept
        assert reports[0]["removed_rows"] == len(rows) - len(kept)
        assert reports[0]["repeated_rows"] == len(rows) - len(kept)
        assert reports[0]["exact_repeats"] == len(rows) - len(set(rows))


@given(rows=ROWS, users=st.integers(1, 4), items=st.integers(1, 4))
def test_too_few_interactions_are_dropped_until_all_have_enough(
    rows: list[Row], users: int, items: int
) -> None:
    left = list(rows)
    while True:
        by_user, by_item = Counter(r[0] for r in left), Counter(r[1] for r in left)
        kept = [r for r in left if by_user[r[0]] >= users and by_item[r[1]] >= items]
        if kept == left:
            break
        left = kept
    settings = {"min_user_interactions": users, "min_item_interactions": items}
    if not left:
        with pytest.raises(DataError, match="No interaction is left"):
            apply(make_log(rows), duplicates="keep_all", **settings)
        return
    log, reports = apply(make_log(rows), duplicates="keep_all", **settings)
    assert rows_of(log) == left
    assert reports[1]["removed_rows"] == len(rows) - len(left)
    assert (reports[1]["users"], reports[1]["items"]) == (log.num_users, log.num_items)


def test_sums_the_weights_of_a_pair_at_its_first_row() -> None:
    rows = [(0, 0, 9), (0, 1, 1), (0, 0, 2), (1, 0, 5)]
    log, _ = apply(make_log(rows, [1.0, 2.0, 0.5, 4.0]), duplicates="sum_weights")
    assert rows_of(log) == [(0, 1, 1), (0, 0, 2), (1, 0, 5)]
    assert log.weights is not None
    assert log.weights.tolist() == [2.0, 1.5, 4.0]
    log, _ = apply(make_log(rows), duplicates="sum_weights")  # without weights each row is 1
    assert log.weights is not None
    assert log.weights.tolist() == [1.0, 2.0, 1.0]


@pytest.mark.parametrize(
    ("exclude_seen", "rule", "left"), [(True, "keep_first", 1), (False, "keep_all", 2)]
)
def test_repeats_stay_where_they_are_the_point(exclude_seen: bool, rule: str, left: int) -> None:
    log = make_log([(0, 0, 1), (0, 0, 2)])
    filtered, reports = filter_log(log, FilterSettings(), exclude_seen=exclude_seen)
    assert (len(filtered), reports[0]["rule"]) == (left, rule)


def test_given_parts_are_made_unique_apart_and_only_training_is_thinned() -> None:
    rows = [(0, 0, 1), (0, 0, 2), (1, 1, 1), (0, 0, 3), (0, 0, 3)]
    log = make_log(rows)
    log = code_log(
        pa.table(
            {
                "user_id": log.user_ids.take(pa.array(log.users)),
                "item_id": log.item_ids.take(pa.array(log.items)),
                "timestamp": log.timestamps,
            }
        ),
        np.array([0, 0, 0, 2, 2], np.int8),
    )
    filtered, _ = apply(log, min_user_interactions=1)
    assert filtered.input_rows.tolist() == [0, 2, 3]
    filtered, _ = apply(log, duplicates="keep_all", min_user_interactions=2)
    assert filtered.input_rows.tolist() == [0, 1, 3, 4]


def test_refuses_what_cannot_be() -> None:
    with pytest.raises(ConfigError, match="`min_user_interactions` must be at least 1, got 0"):
        FilterSettings(min_user_interactions=0)
    with pytest.raises(ConfigError, match="`duplicates` must be one of auto, keep_first"):
        FilterSettings(duplicates="drop")
    with pytest.raises(DataError, match="no usable row"):
        make_log([])
    with pytest.raises(DataError, match=r"at least 0; 1 rows are not, the first holds -2\.0"):
        make_log([(0, 0, 0), (1, 1, 1)], [1.0, -2.0])
