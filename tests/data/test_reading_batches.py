"""A log that is read in batches says what one that is read whole says."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recsys.data import (
    ColumnNames,
    LogFiles,
    LogOptions,
    TableFormat,
    interactions_from_table,
    open_interactions,
)
from recsys.data.raw import ReadAgain
from recsys.foundations import DataError

TEXT = {"user_id": "text", "item_id": "text"}
START = 1_700_000_000


@pytest.fixture(autouse=True)
def tiny_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read three rows at a time."""
    for module in ("parts", "reading_parquet"):
        monkeypatch.setattr(f"recsys.data.{module}._ROWS_AT_ONCE", 3)


def open_table(folder: Path, table: pa.Table, **options: Any) -> LogFiles:
    pq.write_table(table, folder / "log.parquet", row_group_size=5)
    return open_interactions(folder / "log.parquet", LogOptions(**options), format=TableFormat())


def make_table(num_rows: int = 20, **columns: Any) -> pa.Table:
    plain = {
        "user_id": [number % 4 for number in range(num_rows)],
        "item_id": [f"i{number % 3}" for number in range(num_rows)],
        "timestamp": [START + number for number in range(num_rows)],
    }
    return pa.table(plain | columns)


def read_numbers(log: LogFiles) -> Iterator[pa.Table]:
    yield from log.batches(log.id_kinds())


def test_batches_hold_the_rows_in_order_with_numbers_as_numbers(tmp_path: Path) -> None:
    table = make_table()
    log = open_table(tmp_path, table)
    assert log.id_kinds() == {"user_id": "signed", "item_id": "text"}
    batches = list(read_numbers(log))
    assert max(batch.num_rows for batch in batches) == 3
    whole = pa.concat_tables(batches)
    assert whole["user_id"].to_pylist() == table["user_id"].to_pylist()
    assert whole["item_id"].to_pylist() == table["item_id"].to_pylist()
    assert pa.concat_tables(log.batches(TEXT)).equals(log.read().table)
    assert (log.num_rows_read, log.dropped) == (20, {})


def test_bad_rows_are_counted_and_named_as_in_one_piece(tmp_path: Path) -> None:
    users: list[int | None] = [None if row in {17, 18} else 1 for row in range(20)]
    items = ["" if row == 4 else "i" for row in range(20)]
    times: list[int | None] = [START] * 20
    times[8], times[11] = 3, None
    table = pa.table({"user_id": users, "item_id": items, "timestamp": times})
    message = (
        r"row 18: column 'user_id' holds no value \(null user id\); bad rows: 2 null user id, "
        r"1 empty item id, 1 null timestamp, 1 implausible timestamp, of 20"
    )
    with pytest.raises(DataError, match=message):
        list(read_numbers(open_table(tmp_path, table)))
    log = open_table(tmp_path, table, on_bad_rows="drop")
    assert sum(batch.num_rows for batch in read_numbers(log)) == 15
    assert list(log.dropped) == [
        "null user id",
        "empty item id",
        "null timestamp",
        "implausible timestamp",
    ]


def test_a_float_that_is_no_id_is_named_by_its_row_of_the_file(tmp_path: Path) -> None:
    table = make_table(user_id=[1.0] * 13 + [2.5] + [1.0] * 6)
    with pytest.raises(
        DataError, match=r"log\.parquet, row 14: the column 'user_id' .* holds 2\.5"
    ):
        list(read_numbers(open_table(tmp_path, table)))


def test_a_float_that_is_no_kind_of_event_is_named_by_its_row_of_the_file(tmp_path: Path) -> None:
    table = make_table(kind=[1.0] * 13 + [2.5] + [1.0] * 6)
    log = open_table(tmp_path, table, columns=ColumnNames(event="kind"), events=("1",))
    with pytest.raises(DataError, match=r"log\.parquet, row 14: the column 'kind' .* holds 2\.5"):
        list(read_numbers(log))


def test_a_unit_that_most_numbers_do_not_have_is_taken_back(tmp_path: Path) -> None:
    # The first batch is in ms, the others in s: as most are. Then ms is implausible.
    times = [1000 * (START + row) if row < 3 else START + row for row in range(20)]
    log = open_table(tmp_path, make_table(timestamp=times), on_bad_rows="drop")
    with pytest.raises(ReadAgain):
        list(read_numbers(log))
    whole = pa.concat_tables(read_numbers(log))
    assert whole["timestamp"].to_pylist() == [10**6 * (START + row) for row in range(3, 20)]
    assert log.dropped == {"implausible timestamp": 3}
    log = open_table(tmp_path, make_table(timestamp=times), on_bad_rows="drop")
    assert log.read().table["timestamp"].to_pylist() == whole["timestamp"].to_pylist()


def test_times_without_numbers_at_first_are_read_once(tmp_path: Path) -> None:
    words = [f"2024-01-0{row + 1}" if row < 5 else str(START) for row in range(9)]
    log = open_table(tmp_path, make_table(9, timestamp=words))
    whole = pa.concat_tables(read_numbers(log))
    assert whole["timestamp"].to_pylist()[5:] == [10**6 * START] * 4


def test_offsets_are_compared_over_all_batches(tmp_path: Path) -> None:
    words = ["2024-01-01T00:00:00Z"] * 7 + ["2024-01-01T00:00:00"] * 13
    with pytest.raises(DataError, match=r"row 8: .* as 13 times do, while 7 have one"):
        list(read_numbers(open_table(tmp_path, make_table(timestamp=words))))


def test_malformed_rows_come_first_among_the_reasons_of_their_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recsys.data.reading_csv._BLOCK_BYTES", 30)
    text = "user_id,item_id\n" + "1,2\n" * 9 + ",3\n" + "1,2\n" * 9 + "1,2,3\n"
    (tmp_path / "log.csv").write_text(text)
    log = open_interactions(tmp_path / "log.csv", LogOptions(), format=TableFormat())
    message = r"row 20 has 3 fields instead of 2 .*1 wrong number of fields, 1 null user id, of 20"
    with pytest.raises(DataError, match=message):
        list(read_numbers(log))


def test_what_a_log_holds_instead_is_looked_up_in_the_files(tmp_path: Path) -> None:
    kinds = ["a"] * 10 + ["b"] * 10
    columns = ColumnNames(event="kind")
    log = open_table(tmp_path, make_table(kind=kinds), columns=columns, events=("x",))
    with pytest.raises(DataError, match=r"\(20 event of another kind\); .* holds 'a', 'b'\.$"):
        list(read_numbers(log))


def test_context_columns_are_cast_to_the_type_of_all_files(tmp_path: Path) -> None:
    for number, hours in enumerate(([1, 2], [1.5, None])):
        pq.write_table(make_table(2, hour=hours), tmp_path / f"{number}.parquet")
    log = open_interactions(tmp_path, LogOptions(context=("hour",)), format=TableFormat())
    assert log.schema.field("hour").type == pa.float64()
    assert log.read().table["hour"].to_pylist() == [1.0, 2.0, 1.5, None]


def test_a_table_in_memory_is_read_in_batches_too() -> None:
    table = make_table(weight=np.arange(20))
    log = interactions_from_table(table, LogOptions())
    assert log.table["weight"].to_pylist() == list(range(20))
    assert log.table["user_id"].to_pylist() == [str(number % 4) for number in range(20)]
