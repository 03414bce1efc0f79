"""Items for Milvus: Parquet files for its bulk import, the schema, and lines that load them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from recsys.export.column_kinds import writable
from recsys.export.engine_names import field_names
from recsys.export.engine_names import milvus_field as milvus_name
from recsys.export.exported_items import COUNT, ID, VECTOR, Block, ExportedItems
from recsys.export.instructions import write_readme
from recsys.export.milvus_columns import Sizes, check_text, milvus_field, milvus_values
from recsys.export.request import ExportRequest
from recsys.foundations import ArgumentError, write_json

_NUMBERS_AT_ONCE = 1 << 23  # of vectors, 32 MiB: a row group, as Milvus's own writer makes them
_MOST_AT_ONCE = 1 << 16
_NUMBERS_OF_FILE = 1 << 28  # of vectors, 1 GiB
_MOST_FIELDS = 64
_INDEX = {
    "field_name": VECTOR,
    "index_type": "HNSW",
    "metric_type": "IP",
    "params": {"M": 16, "efConstruction": 128},
}

_LOAD = '''\
"""Load the items of this folder into Milvus: python load.py [URI [TOKEN]]"""

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
from pymilvus import DataType, MilvusClient

folder = Path(__file__).parent
uri = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:19530"
token = sys.argv[2] if len(sys.argv) > 2 else ""
collection = json.loads((folder / "collection.json").read_text(encoding="utf-8"))
name = collection["collection_name"]
client = MilvusClient(uri=uri, token=token)

schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
for field in collection["fields"]:
    types = {key: DataType[field[key]] for key in ("datatype", "element_type") if key in field}
    schema.add_field(**{**field, **types})
indexes = client.prepare_index_params()
for index in collection["indexes"]:
    indexes.add_index(**index)
client.create_collection(name, schema=schema)

for file in sorted(folder.glob("items-*.parquet")):
    for batch in pq.ParquetFile(file).iter_batches(1000):
        client.insert(name, batch.to_pylist())
client.create_index(name, indexes)
client.load_collection(name)
'''

_README = """\
# Rows for Milvus

{facts}

`collection.json` holds the fields and the index (metric IP, the inner product), `items-*.parquet`
the rows in the types of Milvus's bulk import. `load.py` makes the collection `{name}` and inserts
them, by pymilvus 2.5 or later, into a server or a file of Milvus Lite:

```sh
python load.py http://localhost:19530 root:Milvus
```

Many millions of rows go in faster by bulk import: make the collection by the lines of `load.py`
without `client.insert`, copy the Parquet files to the bucket that the server reads, and say

```python
from pymilvus.bulk_writer import bulk_import, get_import_progress

files = [["items-000000.parquet"]]  # a list for each file; paths in the bucket
answer = bulk_import(url="http://localhost:19530", collection_name="{name}", files=files)
job = answer.json()["data"]["jobId"]
print(get_import_progress(url="http://localhost:19530", job_id=job).json())
```

The ten best items for a vector, such as one of `../users/users.parquet`:

```python
client.search("{name}", data=[vector], limit=10, output_fields=["item_id"])
```

The distance that Milvus gives for IP is the inner product, as in recsys: the larger the better.
Times are microseconds since 1970 UTC, those of the day since midnight. `max_length` and
`max_capacity` leave room for twice what these items need; Milvus plans an import by them.
{columns}"""


def write_milvus(items: ExportedItems, request: ExportRequest, folder: Path) -> None:
    """Write `collection.json`, `items-*.parquet`, `load.py` and `README.md`.

    Args:
        items: What is written, a row group at a time.
        request: Gives the name of the collection.
        folder: Exists.

    Raises:
        ArgumentError: There are more columns than a collection has fields.
        DataError: A value is beyond what Milvus takes.
    """
    types = writable(items.types, "milvus")
    fields = field_names(types, milvus_name, (ID, VECTOR, COUNT))
    if len(fields) + 3 > _MOST_FIELDS:
        raise ArgumentError(
            f"`columns` must name at most {_MOST_FIELDS - 3} for form=milvus, got {len(fields)}: "
            "choose some by columns=[...]."
        )
    sizes = _write_rows(items, fields, folder)
    own = _own_fields(items.dim, sizes)
    others = [milvus_field(fields[column], kind, sizes) for column, kind in types.items()]
    plan = {"collection_name": request.name, "fields": [*own, *others], "indexes": [_INDEX]}
    write_json(folder / "collection.json", plan)
    (folder / "load.py").write_text(_LOAD, encoding="utf-8")
    write_readme(folder, _README, items, fields, name=request.name)


def _own_fields(dim: int, sizes: Sizes) -> list[dict[str, Any]]:
    """Give the arguments of `schema.add_field` for what every item has."""
    key: dict[str, Any] = {"field_name": ID, "datatype": "VARCHAR", "is_primary": True}
    return [
        key | {"max_length": sizes.max_length(ID)},
        {"field_name": VECTOR, "datatype": "FLOAT_VECTOR", "dim": dim},
        {"field_name": COUNT, "datatype": "INT64"},
    ]


def _write_rows(items: ExportedItems, fields: dict[str, str], folder: Path) -> Sizes:
    """Write the Parquet files; give what their texts and lists need."""
    sizes = Sizes()
    at_once = min(max(_NUMBERS_AT_ONCE // items.dim, 1), _MOST_AT_ONCE)
    of_file = max(_NUMBERS_OF_FILE // items.dim, at_once)
    writer: pq.ParquetWriter | None = None
    num_files = num_rows = 0
    for block in items.blocks("milvus", at_once):
        if writer is not None and num_rows + len(block) > of_file:
            writer.close()
            writer, num_rows = None, 0
        columns = _columns(block, fields)
        for field, values in columns.items():
            sizes.note(field, values)
        table = pa.table(columns)
        if writer is None:
            path = folder / f"items-{num_files:06d}.parquet"
            writer, num_files = pq.ParquetWriter(path, table.schema), num_files + 1
        writer.write_table(table, row_group_size=max(len(block), 1))
        num_rows += len(block)
    if writer is not None:
        writer.close()
    return sizes


def _columns(block: Block, fields: dict[str, str]) -> dict[str, pa.Array]:
    check_text(ID, block.ids, block.ids)
    columns = {
        ID: block.ids.cast(pa.string()),
        VECTOR: block.vector_lists().cast(pa.list_(pa.float32())),
        COUNT: block.counts,
    }
    for column, field in fields.items():
        columns[field] = milvus_values(column, block.columns[column], block.ids)
    return columns
