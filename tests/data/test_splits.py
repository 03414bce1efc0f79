"""Each rule against what it promises, and the refusals of what the log cannot give."""

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc_csv
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recsys.data import SplitSettings
from recsys.data.coded_log import PARTS
from recsys.data.moments import format_moment, parse_moment
from recsys.data.split_settings import Split
from recsys.data.splits import describe_split, split_log
from recsys.foundations import ConfigError, DataError, make_numpy_generator

CASES = Path(__file__).parents[1] / "cases"
ROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=60)
SECOND = 1_000_000


@dataclass(frozen=True)
class Outcome:
    """A split with the rows of the log in input order.

    Attributes:
        split: As it was made; its column is gone.
        parts: [M], the part of each row.
        users: The users' ids.
        items: The items' ids.
    """

    split: Split
    parts: NDArray[np.int64]
    users: list[str]
    items: list[str]


def make_log(users: list[int], times: list[int] | None) -> pa.Table:
    """Make a log whose item is the input row."""
    columns: dict[str, Any] = {
        "user_id": pa.array([f"u{user}" for user in users], pa.large_string()),
        "item_id": pa.array([f"i{row:04}" for row in range(len(users))], pa.large_string()),
    }
    if times is not None:
        columns["timestamp"] = pa.array(times, pa.int64())
    return pa.table(columns)


@pytest.fixture(scope="session")
def split(open_log: Any) -> Any:
    """Give a function that splits a log."""

    def split_(
        table: pa.Table,
        clock: str = "time",
        seed: int = 0,
        *,
        table_ids: list[str] | None = None,
        **settings: Any,
    ) -> Outcome:
        ids = None if table_ids is None else pa.array(table_ids, pa.large_string())
        with open_log(table) as opened:
            found, _ = split_log(opened.log, clock, SplitSettings(**settings), seed, ids)
            parts = np.array(opened.column("part", found.parts), np.int64)
            return Outcome(found, parts, opened.column("user"), opened.column("item"))

    return split_


def places(result: Outcome, part: str) -> list[int]:
    found: NDArray[Any] = np.flatnonzero(result.parts == PARTS.index(part))
    return [int(place) for place in found]


@given(
    times=st.lists(st.integers(0, 12), min_size=2, max_size=60),
    share=st.sampled_from([0, 0.1, 0.3]),
)
def test_a_temporal_cut_never_divides_equal_times(
    split: Any, times: list[int], share: float
) -> None:
    times = [*range(-2 * len(times), 0), *times]  # the oldest are always for training
    log = make_log([0] * len(times), times)
    result = split(log, rule="temporal", validation_share=share, test_share=0.2)
    spans = [[times[place] for place in places(result, part)] for part in PARTS[:3]]
    ordered = [span for span in spans if span]
    for earlier, later in pairwise(ordered):
        assert max(earlier) < min(later)
    assert len(spans[2]) >= round(0.2 * len(times))  # ties at the cut join the later part
    assert (share > 0) or not spans[1]


def read_case(name: str) -> list[tuple[str, str]]:
    table = pc_csv.read_csv(CASES / "B09" / name)
    return sorted(zip(table["user_id"].to_pylist(), table["item_id"].to_pylist(), strict=True))


def read_carrier() -> pa.Table:
    table = pc_csv.read_csv(CASES / "B09" / "seconds.csv")
    times = pa.array(table["timestamp"].to_numpy() * SECOND)
    columns = {name: table[name].cast(pa.large_string()) for name in ("user_id", "item_id")}
    return pa.table({**columns, "timestamp": times})


def pairs(result: Outcome, part: str) -> list[tuple[str, str]]:
    return sorted((result.users[place], result.items[place]) for place in places(result, part))


def test_the_last_fifth_in_time_is_the_listed_one(split: Any) -> None:
    log = read_carrier()
    result = split(log, rule="temporal", validation_share=0, test_share=0.2)
    assert result.split.test_from == 1_704_240_000 * SECOND
    assert (len(places(result, "train")), len(places(result, "test"))) == (288, 72)
    assert pairs(result, "test") == read_case("expected_test_last20pct.csv")
    moment: dict[str, Any] = {
        "rule": "temporal",
        "validation_share": 0,
        "test_from": "2024-01-03T02:00:00+02:00",
    }
    assert split(log, **moment).parts.tolist() == result.parts.tolist()


def test_the_last_event_of_each_user_is_the_listed_one(split: Any) -> None:
    log = read_carrier()
    result = split(log, rule="leave_last_out")
    assert pairs(result, "test") == read_case("expected_leave_last_out.csv")
    assert (len(places(result, "train")), len(places(result, "validation"))) == (240, 60)


def test_cuts_may_be_given_as_moments(split: Any) -> None:
    log = make_log([0] * 5, [day * 86_400 * SECOND for day in (400, 401, 402, 403, 404)])
    cuts: dict[str, Any] = {
        "validation_from": str(402 * 86_400),
        "test_from": "1971-02-08",
    }  # day 403
    result = split(log, rule="temporal", **cuts)
    assert result.parts.tolist() == [0, 0, 1, 2, 2]
    one = split(log, rule="temporal", test_from=cuts["test_from"], validation_share=0.2)
    assert one.parts.tolist() == [0, 0, 1, 2, 2]  # a fifth of all, from those before the test


@given(rows=ROWS)
def test_leave_last_out_takes_the_last_by_time_then_input_order(
    split: Any,
    rows: list[tuple[int, int]],
) -> None:
    users, times = [user for user, _ in rows], [time for _, time in rows]
    expected = ["train"] * len(rows)
    for user in set(users):
        own = [place for place in range(len(rows)) if users[place] == user]
        own.sort(key=lambda place: times[place])  # stable: ties by input order
        if len(own) >= 2:
            expected[own[-1]] = "test"
        if len(own) >= 3:
            expected[own[-2]] = "validation"
    for clock in ("time", "order"):
        result = split(make_log(users, times), clock, rule="leave_last_out")
        assert [PARTS[part] for part in result.parts] == expected


@given(
    rows=ROWS, seed=st.integers(0, 9), fold_in=st.sampled_from([0.1, 0.5, 0.9]), timed=st.booleans()
)
def test_held_out_users_have_an_input_before_their_target_and_no_training(
    split: Any, rows: list[tuple[int, int]], seed: int, fold_in: float, timed: bool
) -> None:
    rows = rows + [(user, time) for user in (6, 7, 8, 9) for time in (3, 1)]  # enough to hold out
    users = [user for user, _ in rows]
    times = [time for _, time in rows] if timed else None
    settings: dict[str, Any] = {"validation_share": 0.2, "test_share": 0.2, "fold_in": fold_in}
    log = make_log(users, times)
    clock = "time" if timed else "none"
    result = split(log, clock, seed, rule="strong_generalization", **settings)
    users_in = {part: {users[place] for place in places(result, part)} for part in PARTS}
    assert users_in["validation"] == users_in["validation_input"]
    assert users_in["test"] == users_in["test_input"]
    assert not users_in["train"] & (users_in["test"] | users_in["validation"])
    assert len(users_in["test"]) == round(0.2 * len(set(users)))
    for part in ("validation", "test"):
        for user in users_in[part]:
            known = [p for p in places(result, f"{part}_input") if users[p] == user]
            target = [p for p in places(result, part) if users[p] == user]
            count = len(known) + len(target)
            assert len(known) == min(max(int(np.ceil(fold_in * count)), 1), count - 1)
            if times is not None:
                assert max((times[p], p) for p in known) < min((times[p], p) for p in target)


def test_a_random_fold_takes_any_events_by_seed_and_as_many_as_the_oldest_would_be(
    split: Any,
) -> None:
    log = make_log([user for user in range(10) for _ in range(20)], list(range(200)))
    settings: dict[str, Any] = {"rule": "strong_generalization", "fold_in": 0.7}
    oldest = split(log, **settings)
    drawn = split(log, fold_in_order="random", **settings)
    again = split(log, fold_in_order="random", **settings)
    other = split(log, seed=1, fold_in_order="random", **settings)
    assert drawn.parts.tolist() == again.parts.tolist() != other.parts.tolist()
    sizes = [np.bincount(one.parts, minlength=5).tolist() for one in (oldest, drawn)]
    assert sizes[0] == sizes[1] == [160, 6, 6, 14, 14]
    assert {oldest.users[p] for p in places(oldest, "test")} == {
        drawn.users[p] for p in places(drawn, "test")
    }
    first_target, last_input = min(places(drawn, "test")), max(places(drawn, "test_input"))
    assert first_target < last_input  # by time it would be the other way round
    plain = SplitSettings(fold_in_order="random", **settings)
    assert describe_split(drawn.split, plain, "time")["folded_by"] == "random"
    for clock in ("time", "order"):
        assert describe_split(oldest.split, SplitSettings(**settings), clock)["folded_by"] == clock
    assert describe_split(oldest.split, SplitSettings(**settings), "none")["folded_by"] == "random"


def make_log_of_items(items: list[int]) -> pa.Table:
    columns = {
        "user_id": pa.array([f"u{row % 3}" for row in range(len(items))], pa.large_string()),
        "item_id": pa.array([f"i{item:02}" for item in items], pa.large_string()),
    }
    return pa.table(columns)


@given(items=st.lists(st.integers(0, 30), min_size=8, max_size=80), seed=st.integers(0, 9))
def test_cold_items_are_held_out_with_all_their_events_and_stand_in_the_table(
    split: Any, items: list[int], seed: int
) -> None:
    log = make_log_of_items([*items, *range(20)])
    listed = [f"i{item:02}" for item in range(0, 40, 2)]  # half of the log's, and others
    shares: dict[str, Any] = {"validation_share": 0.1, "test_share": 0.3}
    result = split(log, "none", seed, table_ids=listed, rule="cold_items", **shares)
    kinds = {part: {result.items[p] for p in places(result, part)} for part in PARTS[:3]}
    assert not kinds["test"] & kinds["validation"]
    assert not kinds["train"] & (kinds["test"] | kinds["validation"])
    assert kinds["test"] | kinds["validation"] <= set(listed)
    num_listed = len(set(result.items) & set(listed))
    assert len(kinds["test"]) == round(0.3 * num_listed) == result.split.held_out["test"]
    assert (
        len(kinds["validation"]) == round(0.1 * num_listed) == result.split.held_out["validation"]
    )
    described = describe_split(result.split, SplitSettings(rule="cold_items", **shares), "none")
    assert described["test_items"] == len(kinds["test"])
    assert described["test_share"] == 0.3


def test_the_cold_items_follow_the_seed(split: Any) -> None:
    log = make_log_of_items(list(range(60)))
    table = [f"i{item:02}" for item in range(60)]
    drawn = [split(log, "none", seed, table_ids=table, rule="cold_items") for seed in (0, 0, 1)]
    assert drawn[0].parts.tolist() == drawn[1].parts.tolist() != drawn[2].parts.tolist()


def test_cold_items_without_a_table_of_items_are_refused_by_name(split: Any) -> None:
    with pytest.raises(ConfigError, match="must not be cold_items where there is no table of item"):
        split(make_log_of_items([0, 1, 2]), "none", rule="cold_items")


def test_a_random_split_has_the_shares_and_follows_the_seed(split: Any) -> None:
    log = make_log([0] * 100, None)
    result = split(log, "none", rule="random", validation_share=0.1, test_share=0.25)
    assert np.bincount(result.parts).tolist() == [65, 10, 25]
    same = split(log, "none", rule="random", validation_share=0.1, test_share=0.25)
    other = split(log, "none", 1, rule="random", validation_share=0.1, test_share=0.25)
    assert result.parts.tolist() == same.parts.tolist() != other.parts.tolist()


@given(rows=st.lists(st.integers(0, 5), min_size=5, max_size=60), seed=st.integers(0, 9))
def test_a_random_split_takes_the_rows_of_one_permutation_of_those_that_are_left(
    open_log: Any, rows: list[int], seed: int
) -> None:
    table = make_log(rows, None)
    left = [row for row in range(len(rows)) if rows.count(rows[row]) >= 2]
    if len(left) < 5:
        return
    order = make_numpy_generator(seed, "split").permutation(len(left))
    expected = np.zeros(len(left), np.int64)
    expected[order[: round(0.3 * len(left))]] = PARTS.index("test")
    with open_log(table, min_user_interactions=2) as opened:
        settings = SplitSettings(rule="random", validation_share=0, test_share=0.3)
        found, counts = split_log(opened.log, "none", settings, seed)
        assert opened.column("row") == left
        assert opened.column("part", found.parts) == expected.tolist()
    assert counts.rows.tolist() == np.bincount(expected, minlength=len(PARTS)).tolist()


@pytest.mark.parametrize(
    ("clock", "rule"),
    [("time", "temporal"), ("order", "leave_last_out"), ("none", "random")],
)
def test_auto_follows_the_clock(split: Any, clock: str, rule: str) -> None:
    times = None if clock == "none" else list(range(20))
    assert split(make_log([0] * 20, times), clock).split.rule == rule


@pytest.mark.parametrize(
    ("clock", "words"), [("order", "an order within each user"), ("none", "no timestamp")]
)
def test_a_temporal_split_without_a_clock_is_refused_by_name(
    split: Any, clock: str, words: str
) -> None:
    log = make_log([0, 1], None if clock == "none" else [1, 2])
    with pytest.raises(ConfigError, match=f"must not be temporal where the log has {words}"):
        split(log, clock, rule="temporal")


def test_too_few_users_to_hold_out_are_refused(split: Any) -> None:
    with pytest.raises(
        DataError, match="wants 4 users with at least two interactions; there are 1"
    ):
        split(
            make_log([0, 1, 2, 3, 4, 4], [1] * 6),
            rule="strong_generalization",
            validation_share=0.4,
            test_share=0.4,
        )


def test_an_empty_training_part_is_refused(split: Any) -> None:
    log = make_log([0, 1], [5, 5])
    with pytest.raises(DataError, match="temporal leaves no interaction to train on"):
        split(log, rule="temporal", test_share=0.5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rule": "by_moon"}, "`split.rule` must be one of auto, temporal"),
        ({"test_share": 1.0}, r"`split.test_share` must be in \[0, 1\), got 1.0"),
        ({"test_share": 0.5, "validation_share": 0.5}, "must leave something to train on"),
        ({"fold_in": 1.0}, r"`split.fold_in` must be in \(0, 1\)"),
        (
            {"fold_in_order": "last"},
            "`split.fold_in_order` must be one of time, random, got 'last'",
        ),
    ],
)
def test_refuses_impossible_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SplitSettings(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"test_from": "soon"}, "`split.test_from` must be a time such as"),
        ({"test_from": "12"}, "`split.test_from` must be in the years 1971 to 2100, got '12'"),
        ({"test_from": "2024-01-01", "validation_from": "2024-01-02"}, "must not be after"),
    ],
)
def test_refuses_impossible_cuts(split: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        split(make_log([0, 0], [1, 2]), rule="temporal", **settings)


@given(moment=st.datetimes(datetime(1971, 1, 1), datetime(2100, 12, 31)))
def test_every_notation_of_a_moment_gives_the_same_microseconds(moment: datetime) -> None:
    moment = moment.replace(tzinfo=UTC, microsecond=moment.microsecond // 1000 * 1000)
    seconds = int(moment.replace(microsecond=0).timestamp())
    expected = seconds * SECOND + moment.microsecond
    assert parse_moment("x", moment.isoformat()) == expected
    assert parse_moment("x", moment.isoformat().removesuffix("+00:00")) == expected
    assert parse_moment("x", str(expected)) == expected
    assert parse_moment("x", str(expected * 1000)) == expected
    assert parse_moment("x", str(expected // 1000)) == expected
    assert parse_moment("x", seconds) == seconds * SECOND
    assert parse_moment("x", format_moment(expected)) == expected
