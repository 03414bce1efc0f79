"""Logs out of Parquet parts that differ, and how rows may be spread over files."""

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
from recsys.foundations import DataError

CASES = Path(__file__).parents[1] / "cases"


def read(paths: Any, form: TableFormat | None = None, **options: Any) -> RawLog:
    listed = [str(path) for path in paths] if isinstance(paths, list) else str(paths)
    options = {"columns": ColumnNames()} | options
    return read_interactions(listed, format=form or TableFormat(), **options)


def column(log: RawLog, name: str) -> list[Any]:
    found: list[Any] = log.table[name].to_pylist()
    return found


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


@pytest.mark.parametrize("form", ["plain", "dictionary", "list"])
def test_text_that_is_not_utf8_is_refused_by_its_column(tmp_path: Path, form: str) -> None:
    bounds = pa.array([0, 1, 2, 3], pa.int32()).buffers()[1]
    broken: pa.Array = pa.Array.from_buffers(
        pa.string(), 3, [None, bounds, pa.py_buffer(b"a\xffb")]
    )
    if form == "dictionary":
        broken = broken.dictionary_encode()
    if form == "list":
        broken = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), broken)
    table = pa.table({"user_id": ["u"] * 3, "item_id": ["i"] * 3, "mood": broken})
    pq.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(DataError, match=r"log\.parquet: the column 'mood' .* bytes that are no"):
        read(tmp_path / "log.parquet", context=["mood"])
    assert len(read(tmp_path / "log.parquet").table) == 3


def test_a_column_whose_name_is_no_text_is_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"user_id": ["u"], "item_id": ["i"], "zzzz": [1]}), path)
    path.write_bytes(path.read_bytes().replace(b"zzzz", b"zz\xff\xfe"))
    with pytest.raises(DataError, match=r"log\.parquet cannot be read as Parquet"):
        read(path)
