"""Prepared data sets: small logs worked by hand, then logs with known right answers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from recsys.data import (
    ColumnNames,
    Events,
    FeatureOptions,
    FilterSettings,
    HistoryRanges,
    PreparedDataset,
    RawEntities,
    RawLog,
    SplitSettings,
    TableFormat,
    infer_features,
    prepare_dataset,
    read_entities,
    read_interactions,
    read_prepared,
)
from recsys.foundations import ConfigError, DataError, Ragged

CASES = Path(__file__).parents[1] / "cases"
Row = tuple[str, str, int]  # user, item, time
COLD = SplitSettings(rule="cold_items")


def make_raw(rows: list[Row], *, clock: str = "time", **columns: Any) -> RawLog:
    table = {
        "user_id": pa.array([user for user, _, _ in rows], pa.large_string()),
        "item_id": pa.array([item for _, item, _ in rows], pa.large_string()),
        "timestamp": pa.array([time for _, _, time in rows], pa.int64()),
    }
    if clock == "none":
        del table["timestamp"]
    return RawLog(pa.table(table | columns), clock, {"null user id": 0}, len(rows), [])


def make_entities(ids: list[str], **columns: Any) -> RawEntities:
    return RawEntities(pa.table({"id": pa.array(ids, pa.large_string()), **columns}), {}, [])


def prepare(raw: RawLog, folder: Path, **changes: Any) -> PreparedDataset:
    whole: dict[str, Any] = {
        "items": None,
        "users": None,
        "output": folder / "dataset",
        "filters": FilterSettings(),
        "split": SplitSettings(rule="leave_last_out"),
        "seed": 0,
        "exclude_seen": True,
    }
    return read_prepared(prepare_dataset(raw, **whole | changes))


def ids_of(dataset: PreparedDataset, events: Events) -> list[tuple[str, str]]:
    users = dataset.users.vocabulary.ids_of(events.users).to_pylist()
    return list(zip(users, dataset.items.vocabulary.ids_of(events.items).to_pylist(), strict=True))


ROWS: list[Row] = [
    ("b", "x", 3),
    ("a", "z", 9),
    ("a", "x", 1),
    ("b", "y", 5),
    ("a", "y", 2),
    ("a", "w", 1),
    ("b", "z", 4),
]


def test_events_are_sorted_by_user_then_time_then_input_order(tmp_path: Path) -> None:
    dataset = prepare(make_raw(ROWS), tmp_path)
    by_user: dict[str, list[str]] = {"a": [], "b": []}
    for user, item in ids_of(dataset, dataset.train):
        by_user[user].append(item)
    assert by_user == {"a": ["x", "w"], "b": ["x"]}
    assert sorted(ids_of(dataset, dataset.validation)) == [("a", "y"), ("b", "z")]
    assert sorted(ids_of(dataset, dataset.test)) == [("a", "z"), ("b", "y")]
    assert (np.diff(dataset.train.users) >= 0).all()


def test_rows_that_training_lacks_come_last_and_counts_are_of_training(tmp_path: Path) -> None:
    dataset = prepare(make_raw(ROWS), tmp_path)
    assert (dataset.num_users, dataset.num_items) == (2, 2)
    counts = dict(
        zip(dataset.items.vocabulary.ids.to_pylist(), dataset.items.counts.tolist(), strict=True)
    )
    assert counts == {"x": 2, "w": 1, "y": 0, "z": 0}
    assert set(dataset.items.vocabulary.ids.to_pylist()[:2]) == {"x", "w"}
    assert dataset.train.items.max() < dataset.num_items


def test_the_order_of_the_rows_follows_the_seed_alone(tmp_path: Path) -> None:
    rows = [(f"u{place}", f"i{place:02}", place) for place in range(40)]
    random = SplitSettings(rule="random", validation_share=0, test_share=0)

    def order(raw: list[Row], seed: int) -> list[str]:
        dataset = prepare(make_raw(raw), tmp_path, seed=seed, split=random)
        return [str(text) for text in dataset.items.vocabulary.ids.to_pylist()]

    assert order(rows, 0) == order(rows[::-1], 0) != order(rows, 1)
    assert order(rows, 0) != sorted(order(rows, 0))


def test_the_same_inputs_give_the_same_bytes_and_fingerprint(tmp_path: Path) -> None:
    first = prepare(make_raw(ROWS), tmp_path / "one")
    moved = replace(make_raw(ROWS), sources=[])
    second = prepare(moved, tmp_path / "two")
    assert first.fingerprint == second.fingerprint
    assert first.manifest["files"] == second.manifest["files"]
    assert prepare(make_raw(ROWS), tmp_path, seed=1).fingerprint != first.fingerprint
    assert prepare(make_raw(ROWS[:-1]), tmp_path).fingerprint != first.fingerprint


def test_where_the_sources_lay_is_not_part_of_the_fingerprint(tmp_path: Path) -> None:
    raws = [
        replace(make_raw(ROWS), sources=[{"path": path, "size_bytes": 1, "sha256": digest}])
        for path, digest in (("/a", "00"), ("/b", "00"), ("/b", "11"))
    ]
    prints = [prepare(raw, tmp_path).fingerprint for raw in raws]
    assert prints[0] == prints[1] != prints[2]


CATALOGUE = make_entities(
    ["x", "y", "z", "v", "w"],
    year=[2000, 2002, 2010, 1900, None],
    title=["X", "Y", "Z", "V", None],
    tags=pa.array([["a"], ["b"], [], ["c"], None]),
)


def test_without_features_only_items_with_events_are_candidates(tmp_path: Path) -> None:
    dataset = prepare(make_raw(ROWS), tmp_path, items=CATALOGUE)
    assert dataset.num_items == 2
    assert "v" not in dataset.items.vocabulary.ids.to_pylist()
    assert dataset.manifest["counts"]["items_of_the_table_left_out"] == 1
    assert "left out: neither events nor features: 1" in dataset.summary


def test_with_features_the_whole_table_can_be_retrieved(tmp_path: Path) -> None:
    options = {"tags": FeatureOptions(), "year": FeatureOptions()}
    dataset = prepare(make_raw(ROWS), tmp_path, items=CATALOGUE, item_features=options)
    assert dataset.num_items == len(dataset.items) == 5
    schema = dataset.items.features.schema
    # Only x and w have training events: the one known tag is x's, the mean year is 2000.
    assert schema.specs[0].values == ("a",)
    assert (schema.specs[1].mean, schema.specs[1].scale) == (2000.0, 1.0)
    tags, years = dataset.items.features.columns["tags"], dataset.items.features.columns["year"]
    assert isinstance(tags, Ragged)
    assert isinstance(years, np.ndarray)
    rows = dataset.items.vocabulary.rows(["x", "v", "w", "z"])
    assert [tags[row].tolist() for row in rows] == [[1], [0], [], []]
    assert_array_equal(years[rows], np.array([0, -100, np.nan, 10], np.float32))


def test_plain_columns_and_lists_are_kept_as_read_the_title_first(tmp_path: Path) -> None:
    dataset = prepare(make_raw(ROWS), tmp_path, items=CATALOGUE)
    assert dataset.items.display is not None
    assert dataset.items.display.column_names == ["title", "year", "tags"]
    shown = dataset.items.display["title"].to_pylist()
    known = dict(zip(dataset.items.vocabulary.ids.to_pylist(), shown, strict=True))
    assert known == {"x": "X", "y": "Y", "z": "Z", "w": None}
    tags = dataset.items.display["tags"].to_pylist()
    known = dict(zip(dataset.items.vocabulary.ids.to_pylist(), tags, strict=True))
    assert known == {"x": ["a"], "y": ["b"], "z": [], "w": None}
    assert dataset.users.display is None


def test_users_with_features_but_no_events_come_behind_the_trained_ones(tmp_path: Path) -> None:
    users = make_entities(["c", "b", "a"], age=[30, 20, 40])
    options = {"age": FeatureOptions()}
    dataset = prepare(make_raw(ROWS), tmp_path, users=users, user_features=options)
    assert dataset.num_users == 2
    assert dataset.users.vocabulary.rows(["c"]).tolist() == [2]
    assert dataset.users.features.schema.specs[0].mean == 30.0  # of a and b


def test_ids_that_a_table_lacks_are_named(tmp_path: Path) -> None:
    dataset = prepare(make_raw(ROWS), tmp_path, items=make_entities(["x"], title=["X"]))
    assert dataset.manifest["counts"]["items_absent_from_the_table"] == 1
    assert "Items of the log absent from their table: 1 ('w')." in dataset.summary


def test_the_context_is_learnt_from_training_and_follows_its_event(tmp_path: Path) -> None:
    rows = [("a", f"i{time}", time) for time in range(4)]
    raw = make_raw(rows, device=pa.array(["tv", "phone", "phone", "watch"]), hour=[1, 3, 5, 99])
    options = {"hour": FeatureOptions(kind="numeric")}
    dataset = prepare(raw, tmp_path, context_features=options)
    assert [spec.kind for spec in dataset.context_schema] == ["categorical", "numeric"]
    assert dataset.context_schema.specs[0].values == ("phone", "tv")
    contexts = (dataset.train.context, dataset.validation.context, dataset.test.context)
    devices = [np.asarray(context.columns["device"]).tolist() for context in contexts]
    hours = [np.asarray(context.columns["hour"]).tolist() for context in contexts]
    assert (devices, hours) == ([[2, 1], [1], [0]], [[-1.0, 1.0], [3.0], [97.0]])


def test_weights_come_back(tmp_path: Path) -> None:
    raw = make_raw(ROWS, weight=pa.array(range(7), pa.float32()))
    dataset = prepare(raw, tmp_path, split=SplitSettings(rule="temporal", test_share=0.3))
    assert dataset.train.weights is not None
    assert sorted(dataset.train.weights.tolist()) == [0.0, 2.0, 4.0, 5.0]
    assert prepare(make_raw(ROWS), tmp_path).train.weights is None


def test_a_log_without_time_has_no_timestamps(tmp_path: Path) -> None:
    raw = make_raw(ROWS * 3, clock="none")
    filters = FilterSettings(duplicates="keep_all")
    dataset = prepare(raw, tmp_path, split=SplitSettings(), filters=filters)
    assert (dataset.clock, dataset.train.timestamps) == ("none", None)
    assert dataset.manifest["split"]["rule"] == "random"
    assert "the order of its rows" in prepare(raw, tmp_path).summary


def test_held_out_users_have_their_input_beside_their_target(tmp_path: Path) -> None:
    rows = [(f"u{user}", f"i{item}", item) for user in range(10) for item in range(5)]
    dataset = prepare(
        make_raw(rows), tmp_path, split=SplitSettings(rule="strong_generalization", fold_in=0.6)
    )
    assert dataset.test_input is not None
    assert dataset.validation_input is not None
    assert [len(part) for part in (dataset.train, dataset.test_input, dataset.test)] == [40, 3, 2]
    assert dataset.num_users == 8
    assert dataset.test.users.min() >= 8
    assert [item for _, item in ids_of(dataset, dataset.test)] == ["i3", "i4"]


def test_held_out_items_are_candidates_with_features_and_without_training_events(
    tmp_path: Path,
) -> None:
    rows = [(f"u{n % 7}", f"i{n % 20:02}", n) for n in range(140)]
    ids = [f"i{n:02}" for n in range(22)]  # two that nobody had
    dataset = prepare(
        make_raw(rows),
        tmp_path,
        items=make_entities(ids, kind=["a" if n % 2 else "b" for n in range(22)]),
        item_features={"kind": FeatureOptions()},
        split=SplitSettings(rule="cold_items", validation_share=0.1, test_share=0.2),
    )
    assert dataset.num_items == 22
    held_out = set(dataset.test.items) | set(dataset.validation.items)
    assert len(held_out) == 4 + 2
    assert not held_out & set(dataset.train.items)
    assert dataset.items.counts[sorted(held_out)].tolist() == [0] * 6
    assert np.asarray(dataset.items.features.columns["kind"]).all()
    leaks = dataset.manifest["leakage"]
    assert leaks["test"]["items_unseen_in_train"] == 4
    assert leaks["test"]["rows_of_items_unseen_in_train"] == len(dataset.test) == 28
    assert leaks["validation"]["items_unseen_in_train"] == 2
    assert dataset.manifest["counts"]["items_of_the_table_without_events"] == 2 + 6
    assert "validation_items 2, test_items 4): train 98, validation 14, test 28" in dataset.summary


def test_parts_may_be_given(tmp_path: Path) -> None:
    train, test = make_raw(ROWS[:5]), make_raw([("new", "x", 1), ("a", "x", 99), ("a", "new", 3)])
    dataset = prepare(train, tmp_path, test=test, split=SplitSettings(rule="given"))
    assert (len(dataset.train), len(dataset.validation), len(dataset.test)) == (5, 0, 3)
    assert (dataset.num_users, dataset.num_items) == (2, 3)
    leaks = dataset.manifest["leakage"]["test"]
    assert leaks["pairs_in_train"] == leaks["items_unseen_in_train"] == 1
    assert leaks["users_unseen_in_train"] == 1
    assert "The validation part is empty." in dataset.summary


def test_training_weights_that_are_all_zero_are_refused(tmp_path: Path) -> None:
    # Of the rows for training (b x, a x, a w) none weighs anything; others do.
    weights = pa.array([0, 9, 0, 9, 9, 0, 0], pa.float32())
    with pytest.raises(DataError, match="All training weights are 0"):
        prepare(make_raw(ROWS, weight=weights), tmp_path)
    assert not (tmp_path / "dataset").exists()


@pytest.mark.parametrize("weighted", ["train", "test"])
def test_given_parts_may_differ_in_having_weights(tmp_path: Path, weighted: str) -> None:
    raws = {"train": make_raw(ROWS[:5]), "test": make_raw(ROWS[5:])}
    table = raws[weighted].table
    weights = pa.array([3.0] * table.num_rows, pa.float32())
    raws[weighted] = replace(raws[weighted], table=table.append_column("weight", weights))
    given = SplitSettings(rule="given")
    dataset = prepare(raws["train"], tmp_path, test=raws["test"], split=given)
    parts = [events.weights for events in (dataset.train, dataset.test)]
    found = [None if weights is None else weights.tolist() for weights in parts]
    assert found == ([[3.0] * 5, [1.0] * 2] if weighted == "train" else [None, None])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"split": SplitSettings(rule="given"), "test": make_raw(ROWS, clock="order")},
            DataError,
            "test part has the clock 'order', the train part 'time'",
        ),
        (
            {"split": SplitSettings(rule="given"), "test": make_raw(ROWS, hour=[1] * 7)},
            DataError,
            "test part has the columns user_id, item_id, timestamp, hour",
        ),
        ({"test": make_raw(ROWS)}, ConfigError, "must be given where the parts are read apart"),
        ({"item_features": {"year": FeatureOptions()}}, DataError, "no table of items is given"),
        (
            {"items": CATALOGUE, "item_features": {"colour": FeatureOptions()}},
            DataError,
            "column 'colour' is absent; there are .*'tags', in the table of items",
        ),
        (
            {
                "users": make_entities(["a", "b"], age=["old", "new"]),
                "user_features": {"age": FeatureOptions(kind="numeric")},
            },
            DataError,
            "column 'age' must hold numbers: .*, in the table of users",
        ),
        ({"context_features": {"hour": FeatureOptions()}}, DataError, "no context column 'hour'"),
        ({"split": COLD}, ConfigError, "must not be cold_items where there is no table of items"),
        (
            {"split": COLD, "items": make_entities(["x"])},
            ConfigError,
            "must not be cold_items where items have no feature",
        ),
        ({"filters": FilterSettings(min_user_interactions=9)}, DataError, "No interaction is left"),
    ],
)
def test_refuses_what_does_not_fit(
    tmp_path: Path, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        prepare(make_raw(ROWS), tmp_path, **change)
    assert not (tmp_path / "dataset").exists()


LOGS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("vwxyz"), st.integers(0, 3)),
    min_size=4,
    max_size=30,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=LOGS, rule=st.sampled_from(["leave_last_out", "random"]))
def test_every_row_is_in_one_part_and_no_positive_in_its_own_history(
    tmp_path: Path, rows: list[Row], rule: str
) -> None:
    filters = FilterSettings(duplicates="keep_all")
    chosen = SplitSettings(rule=rule, validation_share=0.2, test_share=0.2)
    dataset = prepare(make_raw(rows), tmp_path, filters=filters, split=chosen)
    parts = (dataset.train, dataset.validation, dataset.test)
    seen = [
        (*pair, time)
        for part in parts
        for pair, time in zip(ids_of(dataset, part), times_of(part), strict=True)
    ]
    assert sorted(seen) == sorted(rows)
    ranges = HistoryRanges(dataset.train, clock=dataset.clock, ties="exclude")
    starts, ends = ranges.of(np.arange(len(dataset.train)))
    times = np.array(times_of(dataset.train))
    for position in range(len(dataset.train)):
        known = times[starts[position] : ends[position]]
        assert (known < times[position]).all()
    assert dataset.items.counts.sum() == dataset.users.counts.sum() == len(dataset.train)


def times_of(events: Events) -> list[int]:
    assert events.timestamps is not None
    return [int(time) for time in events.timestamps]


def read_case(name: str) -> RawLog:
    path = CASES / name / "interactions.csv"
    return read_interactions(str(path), format=TableFormat(), columns=ColumnNames())


def test_repeated_interactions_are_counted_and_made_unique(tmp_path: Path) -> None:
    dataset = prepare(read_case("B10"), tmp_path)
    report = dataset.manifest["filters"][0]
    assert (report["rule"], report["removed_rows"], report["exact_repeats"]) == (
        "keep_first",
        50,
        30,
    )
    assert report["rows"] == 360
    assert dataset.manifest["leakage"]["test"]["pairs_in_train"] == 0
    assert "50 rows repeat a user-item pair, 30 of them with the same time" in dataset.summary


def test_repeats_that_are_kept_are_flagged_in_the_test_part(tmp_path: Path) -> None:
    filters = FilterSettings(duplicates="keep_all")
    dataset = prepare(read_case("B10"), tmp_path, filters=filters)
    assert dataset.manifest["leakage"]["test"]["pairs_in_train"] == 20
    assert "20 test pairs stand in train too" in dataset.summary
    assert dataset.items.counts.sum() == len(dataset.train) == 290  # 410 less two for each of 60


def test_odd_catalogue_rows_never_multiply_the_log(tmp_path: Path) -> None:
    items = read_entities(
        str(CASES / "B13" / "catalog.csv"),
        format=TableFormat(),
        id_column="item_id",
        what="item",
        on_bad_rows="drop",
    )
    everything = SplitSettings(rule="random", validation_share=0, test_share=0)
    plain = prepare(read_case("B13"), tmp_path, items=items, split=everything)
    assert (len(plain.train), plain.num_items) == (361, 49)  # 48 of the log, and orphan
    assert plain.manifest["counts"]["items_of_the_table_left_out"] == 1  # x999
    assert "1 ('orphan')" in plain.summary
    assert "'i002'" in plain.summary
    assert "'i003'" in plain.summary
    features = infer_features(items.table, but={"id"})
    rich = prepare(
        read_case("B13"), tmp_path, items=items, split=everything, item_features=features
    )
    assert (len(rich.train), rich.num_items) == (361, 50)  # x999 has features
    assert len(set(rich.items.vocabulary.ids.to_pylist())) == 50
    assert rich.items.counts[rich.items.vocabulary.rows(["x999"])].tolist() == [0]


def test_nothing_of_the_future_is_known_before_the_cut(tmp_path: Path) -> None:
    cut = SplitSettings(rule="temporal", validation_share=0, test_from="2024-01-31T00:00:00+00:00")
    dataset = prepare(read_case("B22"), tmp_path, split=cut)
    assert (len(dataset.train), len(dataset.test)) == (300, 210)
    assert max(times_of(dataset.train)) < 1_706_659_200_000_000
    leaks = dataset.manifest["leakage"]
    assert leaks["train_rows_at_or_after_cut"] == 0
    row = int(dataset.items.vocabulary.rows(["HIT"])[0])
    assert row >= dataset.num_items
    assert dataset.items.counts[row] == 0
    assert leaks["test"]["items_unseen_in_train"] == 1
    assert leaks["test"]["rows_of_items_unseen_in_train"] == 30


def test_a_split_by_user_warns_that_later_events_inform_earlier_ones(tmp_path: Path) -> None:
    dataset = prepare(read_case("B22"), tmp_path)
    late = dataset.manifest["leakage"]["train_rows_at_or_after_cut"]
    assert late > 0
    assert f"{late} training rows are at or after the first held-out moment" in dataset.summary


def test_the_summary_holds_what_a_reader_asks_first(tmp_path: Path) -> None:
    raw = replace(make_raw([(user, item, 10**15 + time) for user, item, time in ROWS]),
                  dropped={"null user id": 3}, warnings=["Odd rows."])  # fmt: skip
    text = prepare(raw, tmp_path).summary
    assert "dropped from interactions: 3 (null user id)" in text
    assert "density 87.500%" in text  # 7 of 2 x 4 pairs
    assert "Time: 2001-09-09T01:46:40.000001Z to 2001-09-09T01:46:40.000009Z" in text
    # Training counts x 2, w 1: the top item of two has 2 of 3; Gini = (2*2-2-1)*2 - 1 over 6.
    assert "the top 1 % of the items have 66.7% of the events" in text
    assert "Gini 0.17" in text
    assert "Split leave_last_out: train 3, validation 2, test 2" in text
    assert "Warning: Odd rows." in text
