"""Tables of items and users: one row an id."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recsys.data import RawEntities, TableFormat, entities_from_table, read_entities
from recsys.foundations import ArgumentError, DataError

B04 = Path(__file__).parents[1] / "cases/B04"


def read(path: Path, form: TableFormat | None = None, **options: Any) -> RawEntities:
    return read_entities(
        str(path), format=form or TableFormat(), id_column="item_id", what="item", **options
    )


def build(table: dict[str, Any], **options: Any) -> RawEntities:
    return entities_from_table(pa.table(table), id_column="item_id", what="item", **options)


def test_b04_one_catalogue_in_three_encodings() -> None:
    plain = read(B04 / "catalog_utf8.csv").table
    assert plain["title"][0].as_py() == "Café Müller"
    assert plain.column_names == ["id", "title", "genre"]
    assert len(plain) == 48
    assert read(B04 / "catalog_utf8_bom.csv").table.equals(plain)
    assert read(B04 / "catalog_latin1.csv", TableFormat(encoding="latin-1")).table.equals(plain)
    with pytest.raises(
        DataError, match=r"catalog_latin1\.csv, line 2: the byte 0xe9 is not utf-8 text; set data"
    ):
        read(B04 / "catalog_latin1.csv")


def test_b04_a_file_in_the_style_of_movielens_needs_three_settings() -> None:
    path = B04 / "items_pipe_latin1.txt"
    names = ("item_id", "title", "genre")
    form = TableFormat(separator="|", encoding="latin-1", header=False, names=names)
    assert read(path, form).table["title"].equals(read(B04 / "catalog_utf8.csv").table["title"])
    with pytest.raises(
        DataError, match=r"the suffix does not tell the format; set dataset\.file\.format"
    ):
        read(path)
    with pytest.raises(DataError, match="line 1: the byte 0xe9 is not utf-8 text"):
        read(path, TableFormat(separator="|"))
    with pytest.raises(
        DataError,
        match=r"columns\.item_table_id=NAME .* no header line, by dataset\.file\.header=false",
    ):
        read(path, TableFormat(separator="|", encoding="latin-1"))


def test_only_the_columns_asked_for_are_read(tmp_path: Path) -> None:
    # A byte that is not UTF-8 in a column that nobody wants is nobody's trouble.
    (tmp_path / "items.csv").write_bytes(b"note,item_id,price\n\xe9,007,1.50\n")
    found = read(tmp_path / "items.csv", columns=["price"]).table
    assert found.to_pylist() == [{"id": "007", "price": "1.50"}]
    with pytest.raises(DataError, match="has no column 'colour'"):
        read(tmp_path / "items.csv", columns=["colour"])


def test_a_column_that_some_files_lack_is_null_there(tmp_path: Path) -> None:
    pq.write_table(pa.table({"item_id": [1], "price": [2.5]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"item_id": [2], "tags": [["x"]]}), tmp_path / "b.parquet")
    assert read(tmp_path).table.to_pylist() == [
        {"id": "1", "price": 2.5, "tags": None},
        {"id": "2", "price": None, "tags": ["x"]},
    ]


def test_rows_without_an_id_are_bad() -> None:
    table = {"item_id": ["a", None, ""], "x": [1, 2, 3]}
    with pytest.raises(DataError, match=r"row 2: column 'item_id' holds no value .*2 null item id"):
        build(table)
    found = build(table, on_bad_rows="drop")
    assert (found.table.to_pylist(), found.dropped) == ([{"id": "a", "x": 1}], {"null item id": 2})


def test_exact_repeats_go_and_conflicts_are_named(caplog: pytest.LogCaptureFixture) -> None:
    table = {
        "item_id": ["a", "b", "a", "b", "b"],
        "price": [1.0, np.nan, 1.0, np.nan, 3.0],
        "tags": [["x", None], [], ["x", None], [], []],
    }
    with caplog.at_level(logging.WARNING):
        found = build(table)
    assert found.table["id"].to_pylist() == ["a", "b"]
    assert found.dropped == {"repeated item": 2, "conflicting item": 1}
    assert found.warnings == ["Rows of one item id differ; the first one counts: 'b'."]
    assert "the first one counts: 'b'" in caplog.text


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        (["x", "y"], ["x", "y"], True),
        (["x", "y"], ["y", "x"], False),
        (["x"], ["x", "x"], False),
        ([], None, False),
        (None, None, True),
    ],
)
def test_lists_are_compared_value_by_value(first: Any, second: Any, *, alike: bool) -> None:
    column = pa.array([first, second, ["z"]], pa.list_(pa.string()))
    found = build({"item_id": ["a", "a", "b"], "tags": column})
    assert found.dropped == ({"repeated item": 1} if alike else {"conflicting item": 1})
    assert found.table["tags"].to_pylist() == [first, ["z"]]


def test_structs_are_compared_field_by_field() -> None:
    values = [{"w": 1, "h": None}, {"w": 1, "h": None}, {"w": 2, "h": None}]
    found = build({"item_id": ["a", "a", "a"], "size": values})
    assert found.dropped == {"repeated item": 1, "conflicting item": 1}


def test_many_conflicts_are_cut_short() -> None:
    ids = [f"i{number}" for number in range(8)]
    found = build({"item_id": ids * 2, "x": range(16)})
    assert found.warnings[0].endswith("'i0', 'i1', 'i2', 'i3', 'i4' and 3 more.")


def test_a_second_column_named_id_is_refused() -> None:
    with pytest.raises(ArgumentError, match="a column 'id' stands beside the item id"):
        build({"item_id": ["a"], "id": ["b"]})
    with pytest.raises(DataError, match=r"the table has no column 'item_id'; it has 'x'"):
        build({"x": [1]})
