"""Every type that Parquet can hold, in every place of a log and a table: read, or refused."""

import datetime
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recsys.data import (
    ColumnNames,
    FilterSettings,
    LogOptions,
    RawEntities,
    SplitSettings,
    TableFormat,
    entities_from_table,
    infer_features,
    interactions_from_table,
    prepare_dataset,
    read_entities,
    read_interactions,
    read_prepared,
)
from recsys.foundations import DataError, RecsysError

Day = datetime.date
IDS = ["i0", "i1", "i2", "i3", "i4"]
_NUMBERS = [1, 2, None, 3, 1]
_WHOLE = (pa.int8(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64())
_PARTS = (pa.float16(), pa.float32(), pa.float64(), pa.uint64(), pa.time32("s"), pa.time64("ns"))
_TIMES = (pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.duration("ms"))
_TEXTS = (pa.string(), pa.large_string(), pa.string_view())
_BYTES = (pa.binary(), pa.large_binary(), pa.binary_view())
_DECIMALS = (pa.decimal32(5, 2), pa.decimal64(9, 2), pa.decimal128(20, 2), pa.decimal256(50, 2))
_INNER: tuple[tuple[Any, list[Any]], ...] = (
    (pa.string(), ["a", "b"]),
    (pa.string_view(), ["a", "b"]),
    (pa.int64(), [1, 2]),
    (pa.float32(), [0.5, 1.0]),
    (pa.binary(), [b"a", b"b"]),
    (pa.date32(), [Day(2020, 1, 1), Day(2020, 1, 2)]),
    (pa.list_(pa.string()), [["a"], ["b"]]),
    (pa.struct([("x", pa.string())]), [{"x": "a"}, {"x": "b"}]),
    (pa.dictionary(pa.int32(), pa.string()), ["a", "b"]),
)


def make_columns() -> dict[str, pa.Array]:
    """Give columns of 5 rows, the third of which is null where it can be."""
    made = {str(kind): pa.array(_NUMBERS, kind) for kind in (*_WHOLE, *_PARTS[1:], *_TIMES)}
    made["half"] = pa.array(np.arange(5).astype(np.float16))
    made |= {str(kind): pa.array(["a", "b", None, "", "a"], kind) for kind in _TEXTS}
    made |= {str(kind): pa.array([b"a", b"b", None, b"", b"a"], kind) for kind in _BYTES}
    fees = [decimal.Decimal("1.50"), decimal.Decimal(2), None, decimal.Decimal(3), None]
    made |= {str(kind): pa.array(fees, kind) for kind in _DECIMALS}
    days = [Day(2020, 1, 1), Day(2020, 1, 2), None, Day(2020, 1, 3), None]
    made |= {str(kind): pa.array(days, kind) for kind in (pa.date32(), pa.date64())}
    made["bytes of one length"] = pa.array([b"ab", b"cd", None, b"ab", b"cd"], pa.binary(2))
    made |= {"bool": pa.array([True, False, None, True, False]), "null": pa.nulls(5)}
    for inner, two in _INNER:
        lists = [two, two[::-1], None, [two[0], None], two]
        for kind in (pa.list_(inner), pa.large_list(inner)):
            made[str(kind)] = pa.array(lists, kind)
        whole = [two, two[::-1], two, [two[0], None], two]
        made[f"two {inner}"] = pa.array(whole, pa.list_(inner, 2))
        made[f"two {inner}, null"] = pa.array([*whole[:2], None, *whole[3:]], pa.list_(inner, 2))
    made["list view"] = pa.array([["a"], ["b"], None, [], ["a"]], pa.list_view(pa.string()))
    made["struct"] = pa.array([{"x": "a"}, {"x": "b"}, None, {"x": None}, {"x": "a"}])
    pairs = [[("a", 1)], [("b", 2)], None, [], [("a", 1)]]
    made["map"] = pa.array(pairs, pa.map_(pa.string(), pa.int64()))
    words = pa.array(["a", "b", None, "b", "a"])
    for inner in (pa.string(), pa.large_string(), pa.binary()):
        made[f"dictionary {inner}"] = words.cast(inner).dictionary_encode()
    made["uuid"] = pa.array([bytes(16)] * 5, pa.uuid())
    made["json"] = pa.array(['{"a": 1}', "2", None, "2", "3"], pa.json_(pa.string()))
    tensors = pa.array([[1.0, 2.0]] * 5, pa.list_(pa.float32(), 2))
    tensor_kind = pa.fixed_shape_tensor(pa.float32(), [2])
    made["tensor"] = pa.ExtensionArray.from_storage(tensor_kind, tensors)
    return made


COLUMNS = make_columns()
ROLES = ("user_id", "item_id", "timestamp", "context", "rating", "weight", "event", "id", "feature")


def read_with(role: str, column: pa.Array, folder: Path) -> None:
    """Read Parquet files in which the column plays a role, and prepare where types matter then."""
    log: dict[str, Any] = {"user_id": ["u"] * 5, "item_id": IDS, "extra": column}
    log |= {"timestamp": [1_600_000_000 + row for row in range(5)]}
    table: dict[str, Any] = {"item_id": IDS} | ({"extra": column} if role == "feature" else {})
    log |= {role: column} if role in log else {}
    table |= {"item_id": column} if role == "id" else {}
    pq.write_table(pa.table(log), folder / "log.parquet")
    pq.write_table(pa.table(table), folder / "items.parquet")
    names = {role: "extra"} if role in ("rating", "weight", "event") else {}
    options: dict[str, Any] = {"columns": ColumnNames(**names), "on_bad_rows": "drop"}
    of_role: dict[str, dict[str, Any]] = {
        "context": {"context": ["extra"]},
        "rating": {"min_rating": 1},
        "event": {"events": ["a", "1"]},
    }
    options |= of_role.get(role, {})
    raw = read_interactions(str(folder / "log.parquet"), format=TableFormat(), **options)
    items = read_items(folder / "items.parquet")
    if role not in ("user_id", "context", "feature"):
        return
    path = prepare_dataset(
        raw,
        items=items,
        users=None,
        output=folder / "dataset",
        filters=FilterSettings(),
        split=SplitSettings(rule="leave_last_out"),
        seed=0,
        exclude_seen=True,
        item_features=infer_features(items.table, but=("id",)),
    )
    assert read_prepared(path).num_items


def read_items(path: Path) -> RawEntities:
    form = TableFormat()
    return read_entities(
        str(path), format=form, id_column="item_id", what="item", on_bad_rows="drop"
    )


@pytest.mark.parametrize("role", ROLES)
def test_every_type_is_read_or_refused_in_a_sentence(role: str, tmp_path: Path) -> None:
    assert len(COLUMNS) > 65
    read, refused = 0, []
    for name, column in COLUMNS.items():
        folder = tmp_path / name.replace("/", " ")
        folder.mkdir()
        try:
            read_with(role, column, folder)
        except RecsysError as error:
            refused.append(str(error))
            continue
        read += 1
    assert read >= 2
    assert not [words for words in refused if "kernel" in words or "\n" in words]


def test_views_of_text_are_text(tmp_path: Path) -> None:
    texts = ["a", "b", None, "", "a"]
    table = pa.table({"item_id": IDS, "plain": texts, "view": pa.array(texts, pa.string_view())})
    lists = pa.array([[each] for each in texts], pa.list_(pa.string_view()))
    table = table.append_column("views", lists)
    pq.write_table(table, tmp_path / "items.parquet")
    given = entities_from_table(table, id_column="item_id", what="item")
    for read in (given, read_items(tmp_path / "items.parquet")):
        assert read.table["view"].to_pylist() == texts
        assert read.table["view"].type == pa.large_string()
        assert read.table["views"].to_pylist() == [[each] for each in texts]


def test_a_log_in_memory_may_hold_views_and_anything_where_it_is_not_read() -> None:
    ids, users = (pa.array(each, pa.string_view()) for each in (IDS, ["u"] * 5))
    times = pa.array([str(1_600_000_000 + row) for row in range(5)], pa.string_view())
    table = pa.table({"user_id": users, "item_id": ids, "timestamp": times, "x": COLUMNS["map"]})
    log = interactions_from_table(table, LogOptions(columns=ColumnNames()))
    assert log.table["item_id"].to_pylist() == IDS
    assert log.table["timestamp"].to_pylist()[0] == 1_600_000_000_000_000


def test_a_null_among_lists_of_one_length_is_refused_by_file_and_column(tmp_path: Path) -> None:
    column = pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2))
    whole = pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2))
    table = pa.table({"item_id": ["a", "b"], "whole": whole, "vector": column})
    pq.write_table(table, tmp_path / "items.parquet")
    message = (
        r"items\.parquet: the column 'vector' is of type fixed_size_list<.*>\[2\] and holds a null "
        "list, which cannot be read back; write it as lists of any length"
    )
    with pytest.raises(DataError, match=message):
        read_items(tmp_path / "items.parquet")
    given = entities_from_table(table, id_column="item_id", what="item")
    assert given.table["vector"].to_pylist() == [[1.0, 2.0], None]
