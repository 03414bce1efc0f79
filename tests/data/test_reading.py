"""Logs out of text and Parquet files: what is read, what is left out, what is refused."""

import gzip
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.data import (
    ColumnNames,
    LogOptions,
    RawLog,
    TableFormat,
    interactions_from_table,
    read_interactions,
)
from recsys.foundations import ArgumentError, DataError

CASES = Path(__file__).parents[1] / "cases"
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


# Parquet parts whose schemas drift


def test_b07_integers_in_one_part_and_floats_in_the_next() -> None:
    folder = CASES / "B07/a_int_then_double"
    with pytest.raises(DataError, match=r"part-1\.parquet, row 4: column 'user_id' .* 2 null user"):
        read(folder)
    log = read(folder, on_bad_rows="drop")
    assert log.dropped == {"null user id": 2}
    assert set(column(log, "user_id")) == {str(number) for number in range(60)}


def test_b07_integers_in_one_part_and_text_in_the_next() -> None:
    log = read(CASES / "B07/b_int_then_string")
    assert (len(log.table), len(set(column(log, "user_id")))) == (360, 60)


def test_b07_a_column_that_only_a_later_part_has_is_refused() -> None:
    message = r"part-0\.parquet has no column 'timestamp', which .*part-1\.parquet has"
    with pytest.raises(DataError, match=message):
        read(CASES / "B07/c_column_only_in_later_part", on_bad_rows="drop")
    untimed = ColumnNames(timestamp=None)
    assert len(read(CASES / "B07/c_column_only_in_later_part", columns=untimed).table) == 360


def test_b07_a_part_without_a_single_time_is_refused() -> None:
    with pytest.raises(DataError, match=r"part-0\.parquet, row 1: .* 180 null timestamp, of 360"):
        read(CASES / "B07/d_all_null_first")


def test_b07_other_order_width_and_kind_of_columns_give_one_log() -> None:
    log = read(CASES / "B07/e_order_and_width")
    assert (len(log.table), len(set(column(log, "user_id")))) == (360, 60)
    assert len(set(column(log, "item_id"))) == 48
    times = np.array(column(log, "timestamp"))
    assert times.min() >= 1_704_067_200_000_000  # 2024-01-01
    assert times.max() < 1_706_745_600_000_000  # 2024-02-01
    assert len(log.sources) == 2  # not _SUCCESS, not .crc


@pytest.mark.parametrize(
    "name", ["a_int_then_double", "b_int_then_string", "d_all_null_first", "e_order_and_width"]
)
def test_b07_the_order_of_the_parts_changes_no_row(name: str) -> None:
    parts = sorted((CASES / "B07" / name).glob("*.parquet"))
    assert len(parts) == 2
    straight, swapped = (read(each, on_bad_rows="drop") for each in (parts, parts[::-1]))
    rows = [sorted(map(str, log.table.to_pylist())) for log in (straight, swapped)]
    assert rows[0] == rows[1]
    assert straight.dropped == swapped.dropped


@given(cuts=st.lists(st.integers(0, 12), max_size=4), seed=st.integers(0, 99))
def test_how_rows_are_spread_over_files_changes_nothing(
    cuts: list[int], seed: int, tmp_path_factory: Any
) -> None:
    rng = np.random.default_rng(seed)
    rating = [None if value == 0 else int(value) for value in rng.integers(0, 6, 12)]
    times = [None if value == 0 else int(value) for value in rng.integers(0, 3, 12) * 10**9]
    table = pa.table(
        {
            "user_id": pa.array(rng.integers(0, 4, 12)),
            "item_id": [f"i{value}" for value in rng.integers(0, 4, 12)],
            "rating": pa.array(rating, pa.int8()),
            "timestamp": pa.array(times, pa.int64()),
            "device": [f"d{value}" for value in rng.integers(0, 2, 12)],
        }
    )
    folder = tmp_path_factory.mktemp("parts")
    edges = [0, *sorted(cuts), 12]
    for number, (start, stop) in enumerate(itertools.pairwise(edges)):
        pq.write_table(table.slice(start, stop - start), folder / f"{number}.parquet")
    options = LogOptions(min_rating=2, context=("device",), on_bad_rows="drop")
    try:
        whole = interactions_from_table(table, options)
    except DataError:  # not one good row
        return
    spread = read(folder, min_rating=2, context=["device"], on_bad_rows="drop")
    assert spread.table.to_pydict() == whole.table.to_pydict()
    assert (spread.dropped, spread.num_rows_read) == (whole.dropped, whole.num_rows_read)


# Text


def test_b04_a_byte_order_mark_is_no_part_of_the_header() -> None:
    plain, marked = (
        read(CASES / "B04" / name) for name in ("interactions.csv", "interactions_bom.csv")
    )
    assert marked.table.equals(plain.table)
    latin = TableFormat(encoding="latin-1")
    assert read(CASES / "B04/interactions_bom.csv", latin).table.equals(plain.table)


def test_utf16_is_known_by_its_mark(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("user_id,item_id\né,🎧\n".encode("utf-16"))
    assert read(tmp_path / "a.csv").table.to_pylist() == [{"user_id": "é", "item_id": "🎧"}]


def test_separator_header_and_names_are_settings(tmp_path: Path) -> None:
    form = TableFormat(separator="|", header=False, names=("item_id", "user_id"))
    assert column(read_text(tmp_path, "a|b\nc|d\n", form), "user_id") == ["b", "d"]
    unnamed = ColumnNames(user="f0", item="f1")
    bare = TableFormat(format="tsv", header=False)
    log = read_text(tmp_path, "a\tb\nc\td\n", bare, columns=unnamed)
    assert (column(log, "user_id"), column(log, "item_id")) == (["a", "c"], ["b", "d"])


def test_suffixes_tell_the_format_also_of_compressed_files(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("user_id\titem_id\n1\t2\n")
    (tmp_path / "b.CSV.gz").write_bytes(gzip.compress(b"user_id,item_id\n3,4\n"))
    pq.write_table(pa.table({"user_id": ["5"], "item_id": ["6"]}), tmp_path / "c.pq")
    assert column(read(tmp_path), "user_id") == ["1", "3", "5"]
    (tmp_path / "d.txt").write_text("user_id,item_id\n")
    with pytest.raises(DataError, match=r"d\.txt: the suffix does not tell the format; set `form"):
        read(tmp_path)


def test_empty_fields_are_null_and_quoted_ones_empty(tmp_path: Path) -> None:
    text = 'user_id,item_id\n,i\n"",i\nu,"a,b\nc"\n'
    with pytest.raises(DataError, match=r"log\.csv, row 1: column 'user_id' holds no value"):
        read_text(tmp_path, text)
    log = read_text(tmp_path, text, on_bad_rows="drop")
    assert log.dropped == {"null user id": 1, "empty user id": 1}
    assert column(log, "item_id") == ["a,b\nc"]


def test_rows_with_another_number_of_fields_are_bad(tmp_path: Path) -> None:
    text = "user_id,item_id\nu,a\nu\nu,b\nu,c,d\n"
    message = r"log\.csv, row 2 has 1 fields instead of 2 .*: 2 wrong number of fields, of 4"
    with pytest.raises(DataError, match=message):
        read_text(tmp_path, text)
    log = read_text(tmp_path, text, on_bad_rows="drop")
    assert (column(log, "item_id"), log.num_rows_read) == (["a", "b"], 4)


def test_a_header_without_rows_is_an_empty_log(tmp_path: Path) -> None:
    log = read_text(tmp_path, "user_id,item_id,timestamp,weight\n")
    assert (len(log.table), log.clock, log.dropped) == (0, "time", {})
    assert log.table.schema.types == [
        pa.large_string(),
        pa.large_string(),
        pa.int64(),
        pa.float32(),
    ]


def test_files_that_are_no_tables_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"log\.csv is empty"):
        read_text(tmp_path, "")
    with pytest.raises(DataError, match=r"log\.csv cannot be read as Parquet"):
        read_text(tmp_path, "user_id,item_id\n", TableFormat(format="parquet"))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"user_id,item_id\n1,2\n")[:-12])
    with pytest.raises(DataError, match=r"a\.csv\.gz cannot be read: "):
        read(tmp_path / "a.csv.gz")
    with pytest.raises(DataError, match="has the column 'user_id' twice"):
        read_text(tmp_path, "user_id,user_id,item_id\n1,2,3\n")
    with pytest.raises(DataError, match=r"it has 'user_id;item_id'. Is `separator` another one"):
        read_text(tmp_path, "user_id;item_id\n1;2\n")
    with pytest.raises(DataError, match="`encoding` must be a text encoding, got 'nonsense'"):
        read_text(tmp_path, "user_id,item_id\n1,2\n", TableFormat(encoding="nonsense"))


def test_a_byte_that_is_not_of_the_encoding_is_named(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes("user_id,item_id\nu,a\nu,é\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"line 3: the byte 0xe9 is not utf-8 text; set `encoding`"):
        read(tmp_path / "log.csv")
    with pytest.raises(DataError, match="line 3: the byte 0xe9 is not ascii text"):
        read(tmp_path / "log.csv", TableFormat(encoding="ascii"))


# Columns, thresholds, weights


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
    with pytest.raises(DataError, match="has no column 'uid'"):
        read_text(tmp_path, text, columns=ColumnNames(user="uid"))


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
