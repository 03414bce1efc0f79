"""The leakage report against sets, and the measures of the summary worked by hand."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.data.coded_log import PARTS
from recsys.data.leakage import find_leaks
from recsys.data.pair_counts import count_pairs
from recsys.data.part_counts import count_parts
from recsys.data.split_settings import Split
from recsys.data.summary import measure_log

Row = tuple[str, str, int, int]  # user, item, time, part
ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.integers(0, 5), st.integers(0, 2)),
    min_size=1,
)


@pytest.fixture(scope="session")
def leaks_of(open_log: Any) -> Any:
    """Give a function that looks for the leaks of rows whose parts are known."""

    def find(rows: list[Row], clock: str) -> dict[str, Any]:
        table: dict[str, Any] = {
            "user_id": pa.array([row[0] for row in rows], pa.large_string()),
            "item_id": pa.array([row[1] for row in rows], pa.large_string()),
            "timestamp": pa.array([row[2] for row in rows], pa.int64()),
        }
        with open_log(pa.table(table)) as opened:
            log = opened.log
            parts = np.array([row[3] for row in rows], np.int8)[log.columns["row"].map()]
            split = Split("random", log.new_column("split", np.int8, [parts]))
            pairs = count_pairs(log, split.parts)
            assert pairs.distinct == len({row[:2] for row in rows})
            return find_leaks(log, split, clock, count_parts(log, split.parts), pairs)

    return find


@given(rows=ROWS)
def test_counts_like_sets(leaks_of: Any, rows: list[Row]) -> None:
    leaks = leaks_of(rows, "time")
    of = {name: [row for row in rows if row[3] == code] for code, name in enumerate(PARTS[:3])}
    train_items, train_users = {r[1] for r in of["train"]}, {r[0] for r in of["train"]}
    train_pairs = {r[:2] for r in of["train"]}
    for part in ("validation", "test"):
        new_items = [r[1] for r in of[part] if r[1] not in train_items]
        new_users = [r[0] for r in of[part] if r[0] not in train_users]
        expected = {
            "rows": len(of[part]),
            "users": len({r[0] for r in of[part]}),
            "pairs_in_train": len({r[:2] for r in of[part]} & train_pairs),
            "items_unseen_in_train": len(set(new_items)),
            "rows_of_items_unseen_in_train": len(new_items),
            "users_unseen_in_train": len(set(new_users)),
            "rows_of_users_unseen_in_train": len(new_users),
        }
        if part == "test":
            in_validation = {r[:2] for r in of["validation"]}
            expected["pairs_in_validation"] = len({r[:2] for r in of["test"]} & in_validation)
        assert leaks[part] == expected
    held_out = [r[2] for r in rows if r[3] > 0]
    if held_out:
        late = sum(r[2] >= min(held_out) for r in of["train"])
        assert (leaks["cut"], leaks["train_rows_at_or_after_cut"]) == (min(held_out), late)
    else:
        assert "cut" not in leaks


def test_without_a_clock_nothing_is_late(leaks_of: Any) -> None:
    assert "cut" not in leaks_of([("a", "x", 1, 0), ("a", "y", 0, 2)], "order")


def test_measures_worked_by_hand(open_log: Any) -> None:
    times = pa.array([10**15, 10**15 + 10**6, 10**15])
    table = pa.table({"user_id": ["a", "a", "b"], "item_id": ["x", "y", "x"], "timestamp": times})
    with open_log(table) as opened:
        facts = measure_log(opened.log, "time", np.array([0] * 90 + [10] * 10), num_pairs=3)
        assert measure_log(opened.log, "order", np.array([3, 3]), 3)["gini"] == pytest.approx(0)
    assert facts["density"] == 0.75
    assert (facts["first_time"], facts["last_time"]) == (
        "2001-09-09T01:46:40Z",
        "2001-09-09T01:46:41Z",
    )
    assert facts["top_1_percent_share"] == pytest.approx(0.1)
    assert facts["top_10_percent_share"] == 1.0
    assert facts["gini"] == pytest.approx(0.9)  # a tenth has all, evenly
