"""Logs out of delimited text: encodings, separators, headers, rows that do not fit."""

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recsys.data import (
    ColumnNames,
    RawLog,
    TableFormat,
    read_interactions,
)
from recsys.foundations import DataError

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


def test_a_tab_may_be_written_as_a_shell_gives_it(tmp_path: Path) -> None:
    form = TableFormat(separator=r"\t")
    assert form == TableFormat(separator="\t")
    assert column(read_text(tmp_path, "user_id\titem_id\na,b\tc\n", form), "user_id") == ["a,b"]


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
    with pytest.raises(DataError, match=r"d\.txt: the suffix does not tell the format; set data"):
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
    with pytest.raises(
        DataError, match=r"it has 'user_id;item_id'\. Is the separator another one \(dataset\.file"
    ):
        read_text(tmp_path, "user_id;item_id\n1;2\n")
    with pytest.raises(DataError, match="`encoding` must be a text encoding, got 'nonsense'"):
        read_text(tmp_path, "user_id,item_id\n1,2\n", TableFormat(encoding="nonsense"))


def test_a_byte_that_is_not_of_the_encoding_is_named(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes("user_id,item_id\nu,a\nu,é\n".encode("latin-1"))
    with pytest.raises(
        DataError, match=r"line 3: the byte 0xe9 is not utf-8 text; set dataset\.file\.enc"
    ):
        read(tmp_path / "log.csv")
    with pytest.raises(DataError, match="line 3: the byte 0xe9 is not ascii text"):
        read(tmp_path / "log.csv", TableFormat(encoding="ascii"))


def test_an_encoding_that_wants_a_mark_which_the_file_lacks_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("user_id,item_id\nu1,i1\n", encoding="utf-8")
    with pytest.raises(
        DataError, match=r"log.csv, line 1: .* is not utf-16 text; set dataset\.file"
    ):
        read_interactions(path, format=TableFormat(encoding="utf-16"), columns=ColumnNames())


def test_events_that_leave_nothing_are_named_beside_those_there(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("user_id,item_id,event\nu1,i1,view\nu2,i1,click\n", encoding="utf-8")
    words = r"no row is left of 2 .*dataset\.events keeps 'buy', .* 'event' holds 'view', 'click'\."
    with pytest.raises(DataError, match=words):
        read(path, columns=ColumnNames(event="event"), events=["buy"])
    kinds = "".join(f"u,i,{kind}\n" for kind in ["view", "", *"abcdef"])
    (tmp_path / "more.csv").write_text(f"user_id,item_id,event\n{kinds}", encoding="utf-8")
    with pytest.raises(DataError, match=r"holds 'view', 'click', 'a', 'b', 'c', \.\.\.\."):
        read(tmp_path, columns=ColumnNames(event="event"), events=["buy"])
