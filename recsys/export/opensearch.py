"""Items for OpenSearch: the index with its mapping, and bodies of `_bulk`."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from recsys.export.column_kinds import kind_of, value_type, writable
from recsys.export.engine_names import field_names, opensearch_field
from recsys.export.exported_items import COUNT, ID, VECTOR, ExportedItems
from recsys.export.instructions import write_readme
from recsys.export.json_rows import check_length, json_rows
from recsys.export.json_text import joined_lines, json_objects
from recsys.export.request import ExportRequest
from recsys.export.split_files import SplitFiles
from recsys.foundations import write_json

_LONGEST_ID = 512  # bytes
_LONGEST_KEYWORD = 8191  # characters: a term may have 32,766 bytes
_FEWEST_FIELDS = 1000  # what an index allows unless told otherwise
_INTEGERS = {
    "int8": "byte",
    "int16": "short",
    "int32": "integer",
    "int64": "long",
    "uint8": "short",
    "uint16": "integer",
    "uint32": "long",
    "uint64": "unsigned_long",
}
_OTHERS = {"bool": "boolean", "decimal": "double", "moment": "date", "duration": "long"}

_README = """\
# Documents for OpenSearch

{facts}

`index.json` holds the mapping, `bulk-*.ndjson` the documents, each file below {file_mb} MiB
(OpenSearch reads 100 MB, some hosted ones 10 MB). A document's `_id` is the item's id.

```sh
OPENSEARCH=${{OPENSEARCH:-http://localhost:9200}}
curl -sS --fail-with-body -X PUT "$OPENSEARCH/{name}" -H 'Content-Type: application/json' \\
  --data-binary @index.json
for file in bulk-*.ndjson; do
  curl -sS --fail-with-body -X POST "$OPENSEARCH/{name}/_bulk?filter_path=errors,items.*.error" \\
    -H 'Content-Type: application/x-ndjson' --data-binary "@$file" | tee answer.json
  grep -q '"errors":false' answer.json || break
done
curl -sS --fail-with-body -X POST "$OPENSEARCH/{name}/_refresh"
```

With a user and a password put `-u USER:PASSWORD` behind each `curl`. The ten best items for a
vector, such as one of `../users/users.parquet`:

```sh
curl -sS -X POST "$OPENSEARCH/{name}/_search" -H 'Content-Type: application/json' \\
  -d '{{"size": 10, "_source": false,
       "query": {{"knn": {{"vector": {{"vector": [VECTOR], "k": 10}}}}}}}}'
```

OpenSearch's score rises with the inner product s, which ranks as in recsys: it is s + 1 where s is
at least 0, else 1 / (1 - s). The engine is faiss, whose graph lies outside the Java heap;
`"engine": "lucene"` in `index.json` works too (OpenSearch 2.13 or later) and suits small ones.
{columns}"""


def write_opensearch(items: ExportedItems, request: ExportRequest, folder: Path) -> None:
    """Write `index.json`, `bulk-*.ndjson` and `README.md`.

    Args:
        items: What is written, a block at a time.
        request: Gives the name of the index and the size of a file.
        folder: Exists.

    Raises:
        DataError: An id has more than 512 bytes, a document is larger than a file, or a moment is
            beyond what JSON says.
    """
    types = writable(items.types, "opensearch")
    fields = field_names(types, opensearch_field, (ID, COUNT, VECTOR))
    write_json(folder / "index.json", _index(items.dim, types, fields))
    with SplitFiles(
        folder, stem="bulk", suffix=".ndjson", most_bytes=request.file_mb << 20
    ) as files:
        for block in json_rows(items, fields, "opensearch"):
            check_length("an id", block.ids, _LONGEST_ID, "opensearch")
            documents = json_objects({**block.fields, VECTOR: block.vectors})
            action = joined_lines('{"index":{"_id":', block.fields[ID], "}}\n", documents, "\n")
            files.write(action, block.ids)
    name = quote(request.name, safe="")
    write_readme(folder, _README, items, fields, name=name, file_mb=request.file_mb)


def _index(dim: int, types: dict[str, pa.DataType], fields: dict[str, str]) -> dict[str, Any]:
    """Give the body that makes the index; a field that it does not name is refused."""
    method = {
        "name": "hnsw",
        "engine": "faiss",
        "space_type": "innerproduct",
        "parameters": {"m": 16, "ef_construction": 128},
    }
    properties: dict[str, Any] = {
        ID: {"type": "keyword"},
        COUNT: {"type": "long"},
        VECTOR: {"type": "knn_vector", "dimension": dim, "method": method},
    }
    properties |= {fields[name]: _property(kind) for name, kind in types.items()}
    settings: dict[str, Any] = {"knn": True}
    if len(properties) > _FEWEST_FIELDS:
        settings["mapping"] = {"total_fields": {"limit": len(properties)}}
    return {
        "settings": {"index": settings},
        "mappings": {"dynamic": "strict", "properties": properties},
    }


def _property(kind: pa.DataType) -> dict[str, Any]:
    """Give the mapping of a column; lists need none of their own."""
    match kind_of(kind):
        case "text" | "time":
            return {"type": "keyword", "ignore_above": _LONGEST_KEYWORD}
        case "int":
            return {"type": _INTEGERS[str(value_type(kind))]}
        case "float":
            return {"type": "double" if value_type(kind) == pa.float64() else "float"}
        case "moment":
            return {"type": "date", "format": "strict_date_optional_time"}
        case other:
            return {"type": _OTHERS[str(other)]}
