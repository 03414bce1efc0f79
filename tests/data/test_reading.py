"""Which rows and columns of a log are read, left out and refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recsys.data import (
    ColumnNames,
    LogOptions,
    RawLog,
    TableFormat,
    interactions_from_table,
    read_interactions,
)
from recsys.foundations import ArgumentError, DataError

CSV = TableFormat(format="csv")


def read(paths: Any, form: TableFormat | None = None, **options: Any) -> RawLog:
    listed = [str(path) for path in paths] if isinstance(paths, list) else str(paths)
    options = {"columns": ColumnNames()} | options
    return read_interactions(listed, format=form or TableFormat(), **options)


def read_text(folder: Path, text: str, form: TableFormat = CSV, **options: Any) -> RawLog:
    (folder / "log.csv").write_bytes(text.encode())
    return read(folder / "log.csv", form, **options)


def column(log: RawLog, name: str) -> list[Any]:
    found: list[Any] = log.table[name].to_pylist()
    return found


def test_a_missing_column_is_refused_only_if_someone_asked_for_it(tmp_path: Path) -> None:
    text = "user_id,item_id\n1,2\n"
    assert read_text(tmp_path, text).clock == "none"
    for name in ("timestamp", "weight", "rating"):
        with pytest.raises(DataError, match=f"has no column '{name}'; it has 'user_id', 'item_id'"):
            read_text(tmp_path, text, required=frozenset({name}))
    with pytest.raises(DataError, match="has no column 'device'"):
        read_text(tmp_path, text, context=["device"])
    with pytest.raises(DataError, match="has no column 'rating'"):
        read_text(tmp_path, text, min_rating=0)


@pytest.mark.parametrize("field", ["user", "item", "timestamp", "rating", "weight", "event"])
def test_a_missing_column_is_named_beside_its_setting(tmp_path: Path, field: str) -> None:
    words = rf"no column 'x'; .* by dataset\.columns\.{field}=NAME \(of a lookup: columns\.{field}="
    columns = ColumnNames(**{field: "x"})
    with pytest.raises(DataError, match=words):
        read_text(tmp_path, "user_id,item_id\n1,2\n", columns=columns, required=frozenset({"x"}))


@pytest.mark.parametrize("values", [["4", "", "3.5", "nan", "5"], [4.0, None, 3.5, np.nan, 5.0]])
def test_a_missing_rating_fails_the_threshold_and_is_no_bad_row(values: list[Any]) -> None:
    # "nan" written out in text is no number.
    policy = "drop" if isinstance(values[0], str) else "error"
    ratings = pa.array(values)
    if policy == "drop":
        ratings = pa.array([value or None for value in values])
    table = pa.table({"user_id": range(5), "item_id": range(5), "rating": ratings})
    log = interactions_from_table(table, LogOptions(min_rating=4, on_bad_rows=policy))
    assert column(log, "user_id") == ["0", "4"]
    assert sum(log.dropped.values()) == 3
    assert log.dropped["below the rating threshold"] == (2 if policy == "drop" else 3)


def test_without_a_threshold_ratings_are_not_looked_at(tmp_path: Path) -> None:
    log = read_text(tmp_path, "user_id,item_id,rating\n1,2,\n1,3,five\n")
    assert (len(log.table), log.table.column_names) == (2, ["user_id", "item_id"])
    with pytest.raises(DataError, match=r"row 2: column 'rating' holds 'five' \(unreadable rating"):
        read_text(tmp_path, "user_id,item_id,rating\n1,2,\n1,3,five\n1,4,3\n", min_rating=0)


def test_a_threshold_of_zero_is_a_threshold() -> None:
    table = pa.table({"user_id": [1, 2, 3], "item_id": [1, 2, 3], "rating": [0, -1, None]})
    log = interactions_from_table(table, LogOptions(min_rating=0))
    assert column(log, "user_id") == ["1"]


def test_only_events_of_the_kinds_asked_for_stay() -> None:
    table = pa.table(
        {
            "user_id": ["a", None, "c", "d"],
            "item_id": ["1", "2", "3", "4"],
            "action": pa.array(["buy", "view", "cart", None]).dictionary_encode(),
        }
    )
    options = LogOptions(columns=ColumnNames(event="action"), events=("buy", "cart"))
    log = interactions_from_table(table, options)  # the null user is on a row nobody wants
    assert column(log, "user_id") == ["a", "c"]
    assert log.dropped == {"event of another kind": 2}


def test_weights_that_cannot_be_used_are_bad() -> None:
    weights = [1.5, 0.0, -1.0, None, np.inf, np.nan, 1e300]
    table = pa.table({"user_id": range(7), "item_id": range(7), "weight": pa.array(weights)})
    with pytest.raises(DataError, match=r"the table, row 4: column 'weight' holds no value"):
        interactions_from_table(table, LogOptions())
    log = interactions_from_table(table, LogOptions(on_bad_rows="drop"))
    assert column(log, "weight") == [1.5, 0.0]
    assert log.dropped == {"null weight": 2, "negative weight": 1, "infinite weight": 2}


def test_weights_and_ratings_are_read_from_text(tmp_path: Path) -> None:
    log = read_text(
        tmp_path,
        'user_id,item_id,weight\n1,2, 0.5\n1,3,2e1\n1,4,"1,5"\n',
        on_bad_rows="drop",
    )
    assert column(log, "weight") == [0.5, 20.0]
    assert log.dropped == {"unreadable weight": 1}


def test_weights_may_be_of_any_type_that_holds_numbers() -> None:
    kinds = [pa.array([True, False]), pa.array(["1", "0"]).dictionary_encode()]
    kinds += [pa.array([1, 0], pa.uint8()), pa.array([1, 0], pa.decimal128(5, 2))]
    for weights in kinds:
        table = pa.table({"user_id": ["u", "v"], "item_id": ["i", "j"], "weight": weights})
        assert column(interactions_from_table(table, LogOptions()), "weight") == [1.0, 0.0]
    lists = pa.table({"user_id": ["u"], "item_id": ["i"], "weight": [[1.0]]})
    with pytest.raises(DataError, match=r"holds \[1\.0\] \(unreadable weight\)"):
        interactions_from_table(lists, LogOptions())
    nulls = pa.table({"user_id": ["u"], "item_id": ["i"], "weight": pa.nulls(1)})
    with pytest.raises(DataError, match=r"holds no value \(null weight\)"):
        interactions_from_table(nulls, LogOptions())


def test_each_bad_row_is_counted_once_under_its_first_reason() -> None:
    table = pa.table(
        {
            "user_id": pa.array([None, "u", "u"]),
            "item_id": pa.array([None, None, "i"]),
            "timestamp": pa.array([None, 5, 10**9]),
        }
    )
    log = interactions_from_table(table, LogOptions(on_bad_rows="drop"))
    assert log.dropped == {"null user id": 1, "null item id": 1}
    assert (len(log.table), log.num_rows_read) == (1, 3)


def test_a_log_of_bad_rows_alone_is_refused_whatever_the_policy() -> None:
    table = pa.table({"user_id": pa.array([None, None], pa.string()), "item_id": ["1", "2"]})
    with pytest.raises(DataError, match=r"2 null user id, of 2\.$"):
        interactions_from_table(table, LogOptions(on_bad_rows="drop"))


def test_context_columns_come_along_and_widen(tmp_path: Path) -> None:
    for number, kind in enumerate((pa.int32(), pa.float64(), pa.null())):
        values = pa.array([None if kind == pa.null() else 1], kind)
        table = pa.table({"user_id": ["u"], "item_id": ["i"], "hour": values})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    assert column(read(tmp_path, context=["hour"]), "hour") == [1.0, 1.0, None]
    words = pa.table({"user_id": ["u"], "item_id": ["i"], "hour": ["noon"]})
    pq.write_table(words, tmp_path / "9.parquet")
    with pytest.raises(
        DataError, match=r"'hour' has types that do not go together: int32 in .*large_string in"
    ):
        read(tmp_path, context=["hour"])


def test_options_that_need_one_another_are_checked() -> None:
    with pytest.raises(ArgumentError, match=r"`columns\.event` must be named when `events` is set"):
        LogOptions(events=("buy",))
    with pytest.raises(ArgumentError, match=r"`columns\.rating` must be named"):
        LogOptions(columns=ColumnNames(rating=None), min_rating=3)
    with pytest.raises(ArgumentError, match="`context` must not hold 'weight'"):
        LogOptions(context=("weight",))
    with pytest.raises(ArgumentError, match="`on_bad_rows` must be one of error, drop"):
        LogOptions(on_bad_rows="ignore")
    with pytest.raises(ArgumentError, match="`timestamp_unit` must be one of"):
        LogOptions(timestamp_unit="days")
    with pytest.raises(ArgumentError, match="`separator` must be one character, got '::'"):
        TableFormat(separator="::")
    with pytest.raises(ArgumentError, match="`names` must be empty unless `header` is false"):
        TableFormat(names=("a",))
    with pytest.raises(ArgumentError, match="`names` must differ"):
        TableFormat(header=False, names=("a", "a"))
