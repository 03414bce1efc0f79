"""Recall before and after a warm start: means, paired differences, the table."""

import io

import pyarrow as pa
import pytest
from rich.console import Console

from recsys.evaluation import (
    Resampling,
    WarmStartReport,
    compare_before_after,
    mean_values,
)
from recsys.evaluation.warm_start_table import warm_start_table
from recsys.foundations import DataError

RESAMPLING = Resampling(seed=0, num=200)


def make_table(recalls: list[float], *, users: str = "abcd", k: int = 10) -> pa.Table:
    columns = {"user_id": list(users), f"recall_at_{k}": recalls, "mean_popularity_at_10": recalls}
    return pa.table(columns)


def make_report() -> WarmStartReport:
    before = {"validation": make_table([0, 0, 0, 1]), "test": make_table([0, 1, 0, 0])}
    after = {"validation": make_table([0, 0, 1, 1]), "test": make_table([0, 1, 1, 1])}
    found = compare_before_after(before, after, RESAMPLING)
    return WarmStartReport(
        bundle_id="0123456789abcdef",
        counts={"users": {"kept": 3, "new": 1, "dropped": 0}},
        fresh_features={"items.price": "it is bucket here, numeric in the bundle"},
        before=found["before"],
        after=found["after"],
        difference=found["difference"],
    )


def test_means_and_differences_are_those_of_the_same_users() -> None:
    report = make_report()
    assert report.before["test"]["recall_at_10"].value == 0.25
    assert report.after["test"]["recall_at_10"].value == 0.75
    difference = report.difference["test"]["recall_at_10"]
    # Nobody lost, so that no resample can be below 0.
    assert (difference.value, difference.low) == (0.5, 0.0)
    assert set(report.before["test"]) == {"recall_at_10"}
    plain = report.to_json()
    assert plain["difference"]["validation"]["metrics"] == {"recall_at_10": 0.25}
    assert plain["users"] == {"kept": 3, "new": 1, "dropped": 0}
    assert report.flat_metrics() == {
        "after_validation_recall_at_10": 0.5,
        "after_test_recall_at_10": 0.75,
        "difference_validation_recall_at_10": 0.25,
        "difference_test_recall_at_10": 0.5,
    }
    assert mean_values({"test": make_table([0, 1, 0, 0])}) == {"before_test_recall_at_10": 0.25}


def test_only_what_both_have_is_compared() -> None:
    found = compare_before_after(
        {"test": make_table([0, 1, 0, 0])}, {"test": make_table([0, 1, 0, 0], k=5)}, RESAMPLING
    )
    assert found == {"before": {"test": {}}, "after": {"test": {}}, "difference": {"test": {}}}


def test_other_users_are_refused() -> None:
    other = {"test": make_table([0, 1, 0, 0], users="abdc")}
    with pytest.raises(DataError, match="users of the test part are not those from before"):
        compare_before_after({"test": make_table([0, 1, 0, 0])}, other, RESAMPLING)


def test_the_table_says_what_came_along() -> None:
    page = io.StringIO()
    Console(file=page, width=150).print(warm_start_table(make_report(), 10))
    shown = " ".join(page.getvalue().split())
    assert "Warm start from the bundle 0123456789ab (exact ranking)" in shown
    assert "users: 3 kept, 1 new, 0 dropped; items.price started anew: it is bucket here" in shown
    assert "0.2500 [0.0000, 0.7500]" in shown
