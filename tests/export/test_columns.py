"""What becomes of item columns of every type, in each form."""

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recsys.bundle import Bundle
from recsys.foundations import ArgumentError, DataError

MakeBundle = Callable[..., Bundle]
Export = Callable[..., Path]

# Of the items "a/b", "100%" and the ones named, as JSON has them.
FIRST = {
    "title": "a/b",
    "price": 0.1,
    "big": 9007199254740993,  # 2^53 + 1
    "cost": 12.5,
    "kind": "a",
    "day": "1969-07-20T00:00:00Z",
    "sold": "2024-02-29T12:00:00.123456Z",
    "shown": "2024-02-29T11:00:00.000Z",
    "at": "23:59:58.000000",
    "took": 1_500_000,  # microseconds
    "small": 255,
    "new": True,
    "tags": ["x", 'y"'],
    "sizes": [1, 9007199254740993],
    "a.b": "1",
    "a_b": "9",
    "_id": 1.5,
    "vector": "not one",
    "größe": 1,
}
SECOND = {"title": "100%", "price": 2.0, "big": -(2**63), "cost": 0.01, "kind": "b", "new": False}
SECOND |= {"tags": [], "a.b": "2", "a_b": "8", "_id": 1.5, "vector": "not one", "größe": 2}


def rows_of(folder: Path, form: str) -> dict[str, dict[str, Any]]:
    """Read the columns of each item, but for its id, vector and count."""
    if form == "qdrant":
        points = json.loads((folder / "qdrant" / "points-000000.json").read_text())["points"]
        rows = [point["payload"] for point in points]
    elif form == "opensearch":
        text = (folder / "opensearch" / "bulk-000000.ndjson").read_text()
        rows = [json.loads(line) for line in text.split("\n")[1:-1:2]]
    else:
        files = {"milvus": "milvus/items-000000.parquet", "parquet": "parquet/items.parquet"}
        rows = pq.read_table(folder / files[form]).to_pylist()
    own = ("training_count",) if form == "qdrant" else ("training_count", "vector")
    return {row["item_id"]: {k: row[k] for k in row if k not in ("item_id", *own)} for row in rows}


def renamed(row: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in row.items()}


def test_payloads_of_qdrant(odd_bundle: Bundle, export: Export) -> None:
    folder = export(odd_bundle, "qdrant")
    rows = rows_of(folder, "qdrant")
    assert rows["a/b"] == FIRST
    assert rows["100%"] == SECOND
    assert "price" not in rows["🎈 fête"]  # NaN
    assert "price" not in rows[" blank "]  # infinity
    assert "tags" not in rows["🎈 fête"]  # null
    assert rows[" blank "]["tags"] == ["🎈", "x"]
    assert rows["🎈 fête"]["big"] == 2**63 - 1
    assert rows["007"]["price"] == -1e-7
    assert "title" not in rows["%2F\n"]
    lines = (folder / "qdrant" / "indexes.jsonl").read_text().splitlines()
    indexes = {one["field_name"]: one["field_schema"] for one in map(json.loads, lines)}
    assert indexes == {
        "item_id": "keyword",
        "training_count": "integer",
        "price": "float",
        "big": "integer",
        "cost": "float",
        "kind": "keyword",
        "day": "datetime",
        "sold": "datetime",
        "shown": "datetime",
        "at": "keyword",
        "took": "integer",
        "small": "integer",
        "new": "bool",
        "tags": "keyword",
        "sizes": "integer",
        "_id": "float",
        "vector": "keyword",
        '"größe"': "integer",  # in quotes, as a path to it
    }  # none of texts that all differ: title, a.b, a_b


def test_documents_of_opensearch(odd_bundle: Bundle, export: Export) -> None:
    folder = export(odd_bundle, "opensearch")
    names = {"a.b": "a_b", "a_b": "a_b_2", "_id": "column_id", "vector": "vector_2"}
    rows = rows_of(folder, "opensearch")
    assert rows["a/b"] == renamed(FIRST, names)
    assert rows["100%"] == renamed(SECOND, names)
    mapping = json.loads((folder / "opensearch" / "index.json").read_text())["mappings"]
    assert mapping["dynamic"] == "strict"
    types = {name: one["type"] for name, one in mapping["properties"].items()}
    assert types == {
        "item_id": "keyword",
        "training_count": "long",
        "vector": "knn_vector",
        "title": "keyword",
        "price": "double",
        "big": "long",
        "cost": "double",
        "kind": "keyword",
        "day": "date",
        "sold": "date",
        "shown": "date",
        "at": "keyword",
        "took": "long",
        "small": "short",
        "new": "boolean",
        "tags": "keyword",
        "sizes": "long",
        "a_b": "keyword",
        "a_b_2": "keyword",
        "column_id": "float",
        "vector_2": "keyword",
        "größe": "integer",
    }
    vector = mapping["properties"]["vector"]
    assert (vector["dimension"], vector["method"]["space_type"]) == (8, "innerproduct")
    readme = (folder / "opensearch" / "README.md").read_text()
    assert "| `a_b` | `a_b_2` |" in readme
    assert "| `größe`" not in readme


def test_rows_of_milvus(odd_bundle: Bundle, export: Export) -> None:
    folder = export(odd_bundle, "milvus")
    names = {"a.b": "a_b", "a_b": "a_b_2", "vector": "vector_2", "größe": "gr__e"}
    names["größe"] = "gr__e"
    rows = rows_of(folder, "milvus")
    # 1969-07-20 lies 165 days before 1970; 2024-02-29 19,782 days behind it.
    day, noon = -165 * 86_400 * 10**6, (19_782 * 86_400 + 43_200) * 10**6
    times = {"day": day, "sold": noon + 123_456, "shown": noon - 3600 * 10**6}
    times["at"] = 86_398 * 10**6
    assert rows["a/b"] == renamed(FIRST | times, names)
    nothing = dict.fromkeys(renamed(FIRST, names))
    assert rows["100%"] == nothing | renamed(SECOND, names)
    assert rows["🎈 fête"]["price"] is None
    assert rows[" blank "]["price"] is None
    assert rows["🎈 fête"]["tags"] is None
    assert rows[" blank "]["tags"] == ["🎈", "x"]
    collection = json.loads((folder / "milvus" / "collection.json").read_text())
    fields = {one["field_name"]: one for one in collection["fields"]}
    schema = pq.read_schema(folder / "milvus" / "items-000000.parquet")
    assert list(fields) == schema.names
    assert fields["item_id"]["is_primary"]
    assert fields["vector"] == {"field_name": "vector", "datatype": "FLOAT_VECTOR", "dim": 8}
    assert (fields["tags"]["datatype"], fields["tags"]["element_type"]) == ("ARRAY", "VARCHAR")
    assert schema.field("vector").type == pa.list_(pa.float32())
    expected = {"small": "INT16", "big": "INT64", "cost": "DOUBLE", "_id": "FLOAT", "day": "INT64"}
    assert {name: fields[name]["datatype"] for name in expected} == expected
    assert schema.field("small").type == pa.int16()
    # Twice the longest, up to a power of two: 16 bytes of "../../etc/passwd", lists of 2 and of 2.
    assert (fields["title"]["max_length"], fields["tags"]["max_capacity"]) == (64, 8)
    assert collection["indexes"][0]["metric_type"] == "IP"


def test_columns_of_parquet_keep_their_types(odd_bundle: Bundle, export: Export) -> None:
    folder = export(odd_bundle, "parquet")
    table = pq.read_table(folder / "parquet" / "items.parquet")
    assert table.schema.field("item_id").type == pa.string()
    assert table.schema.field("vector").type == pa.list_(pa.float32(), 8)
    assert table.schema.field("training_count").type == pa.int64()
    assert table.schema.field("cost").type == pa.decimal128(12, 2)
    assert table.schema.field("shown").type == pa.timestamp("ms", "Europe/Paris")
    assert table.schema.field("tags").type == pa.list_(pa.string())
    first = rows_of(folder, "parquet")["a/b"]
    assert first["cost"] == Decimal("12.50")
    assert first["sold"] == dt.datetime(2024, 2, 29, 12, 0, 0, 123456)
    assert first["bytes"] == b"\xff\x00"
    assert first["vector_2"] == "not one"
    assert first["tags"] == ["x", 'y"']
    counts = dict(
        zip(table["item_id"].to_pylist(), table["training_count"].to_pylist(), strict=True)
    )
    stored = odd_bundle.items
    assert counts == dict(zip(stored.vocabulary.ids.to_pylist(), stored.counts, strict=True))


def test_only_the_columns_that_are_asked_for_go_along(odd_bundle: Bundle, export: Export) -> None:
    folder = export(odd_bundle, "qdrant", columns=("price", "title"))
    assert rows_of(folder, "qdrant")["a/b"] == {"price": 0.1, "title": "a/b"}
    folder = export(odd_bundle, "qdrant", columns=())
    assert rows_of(folder, "qdrant")["a/b"] == {}
    with pytest.raises(ArgumentError, match=r"`columns` must be among .* \(title, .*got 'prize'"):
        export(odd_bundle, "qdrant", columns=("prize",))


ITEMS = [f"i{n}" for n in range(12)]


def test_milvus_has_room_for_twice_the_longest_text_and_list(
    make_bundle: MakeBundle, export: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recsys.export.milvus._MOST_AT_ONCE", 5)
    texts = pa.array(["ü" * 50, *["x"] * 10, "x" * 60_000])  # 100 bytes and 60,000
    lists = pa.array([["a"] * 33, *[["b" * 65]] * 11])
    bundle = make_bundle([*ITEMS[:-1], "i" * 33], {"c": texts, "d": lists})
    folder = export(bundle, "milvus")
    collection = json.loads((folder / "milvus" / "collection.json").read_text())
    fields = {one["field_name"]: one for one in collection["fields"]}
    assert fields["item_id"]["max_length"] == 128
    assert fields["c"]["max_length"] == 65_535
    assert (fields["d"]["max_length"], fields["d"]["max_capacity"]) == (256, 128)


@pytest.mark.parametrize(
    ("form", "column", "words"),
    [
        ("milvus", pa.array(["x" * 65_536] * 12), "'c' holds a text of 65,536 bytes for item 'i"),
        ("milvus", pa.array([[1] * 4097] * 12), "'c' holds a list of 4,097 for item 'i"),
        ("milvus", pa.array([2**63] * 12, pa.uint64()), "holds 9223372036854775808, beyond INT64,"),
        (
            "qdrant",
            pa.array([2**40] * 12, pa.timestamp("s")),
            "years 1 to 9999: 1099511627776000 ms since 1970; leave",
        ),
        ("qdrant", pa.array(["x" * (1 << 20)] * 12), "more than the .* of a file: raise file_mb"),
    ],
)
def test_values_that_an_engine_refuses_are_named(
    make_bundle: MakeBundle, export: Export, form: str, column: pa.Array, words: str
) -> None:
    bundle = make_bundle(ITEMS, {"c": column})
    with pytest.raises(DataError, match=words):
        export(bundle, form, file_mb=1)
    assert not list(bundle.path.parent.glob("*export*"))


def test_ids_that_an_engine_refuses_are_named(make_bundle: MakeBundle, export: Export) -> None:
    bundle = make_bundle([*ITEMS, "ü" * 300])
    export(bundle, "milvus")
    with pytest.raises(DataError, match="takes an id of at most 512 bytes, got 600: 'ü"):
        export(bundle, "opensearch")


def test_more_columns_than_milvus_has_fields_are_refused(
    make_bundle: MakeBundle, export: Export
) -> None:
    columns = {f"c{n}": pa.array(range(12)) for n in range(62)}
    bundle = make_bundle(ITEMS, columns)
    with pytest.raises(ArgumentError, match="at most 61 for form=milvus, got 62: choose some"):
        export(bundle, "milvus")
    export(bundle, "milvus", columns=tuple(columns)[:61])
