"""Items for Qdrant: the collection, its payload indexes, and points in bodies of upserts."""

import json
import re
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from recsys.data import is_list
from recsys.export.column_kinds import kind_of, writable
from recsys.export.engine_names import field_names, qdrant_field
from recsys.export.exported_items import COUNT, ID, ExportedItems
from recsys.export.instructions import write_readme
from recsys.export.json_rows import JsonRows, json_rows
from recsys.export.json_text import joined_lines, json_objects
from recsys.export.request import ExportRequest
from recsys.export.split_files import SplitFiles
from recsys.foundations import write_json

_SCHEMAS = {"text": "keyword", "bool": "bool", "int": "integer", "duration": "integer"}
_SCHEMAS |= {"float": "float", "decimal": "float", "moment": "datetime", "time": "keyword"}
_RAW_KEY = re.compile(r"[A-Za-z0-9_-]+")  # of a path to a payload's value; others stand in quotes
_LOOKED_AT = 100_000  # items of which it is asked whether most texts differ

_README = """\
# Points for Qdrant

{facts}

`collection.json` holds the settings of the collection, `indexes.jsonl` a payload index a line,
`points-*.json` the points, each file below {file_mb} MiB (Qdrant reads 32 MB, unless
`service.max_request_size_mb` says otherwise). A point's id is the item's row in the bundle, for
Qdrant takes no text; the id as you know it is `item_id` in the payload.

```sh
QDRANT=${{QDRANT:-http://localhost:6333}}
send() {{ curl -sS --fail-with-body -o /dev/null -H "api-key: ${{QDRANT_API_KEY:-}}" \\
  -H 'Content-Type: application/json' -X PUT "$QDRANT/collections/{name}$1" --data-binary "$2"; }}
send '' @collection.json
while IFS= read -r index; do send '/index?wait=true' "$index"; done < indexes.jsonl
for file in points-*.json; do send '/points?wait=true' "@$file" || break; done
```

The ten best items for a vector, such as one of `../users/users.parquet`:

```sh
curl -sS -H "api-key: ${{QDRANT_API_KEY:-}}" -H 'Content-Type: application/json' \\
  -X POST "$QDRANT/collections/{name}/points/query" \\
  -d '{{"query": [VECTOR], "limit": 10, "with_payload": ["item_id"]}}'
```

The score is the inner product, as in recsys.
{columns}"""


def write_qdrant(items: ExportedItems, request: ExportRequest, folder: Path) -> None:
    """Write `collection.json`, `indexes.jsonl`, `points-*.json` and `README.md`.

    Args:
        items: What is written, a block at a time.
        request: Gives the name of the collection and the size of a file.
        folder: Exists.

    Raises:
        DataError: A point is larger than a file, or a moment is beyond what JSON says.
    """
    types = writable(items.types, "qdrant")
    fields = field_names(types, qdrant_field, (ID, COUNT))
    write_json(folder / "collection.json", {"vectors": {"size": items.dim, "distance": "Dot"}})
    indexes = [json.dumps(one, ensure_ascii=False) for one in _indexes(items, types, fields)]
    (folder / "indexes.jsonl").write_text("".join(f"{one}\n" for one in indexes), "utf-8")
    with SplitFiles(
        folder,
        stem="points",
        suffix=".json",
        most_bytes=request.file_mb << 20,
        opening=b'{"points":[',
        closing=b"]}\n",
        separator=b",\n",
    ) as files:
        for block in json_rows(items, fields, "qdrant"):
            files.write(_points(block), block.ids)
    name = quote(request.name, safe="")
    write_readme(folder, _README, items, fields, name=name, file_mb=request.file_mb)


def _points(block: JsonRows) -> pa.LargeStringArray:
    payload = json_objects(block.fields)
    return joined_lines(
        '{"id":', block.rows, ',"vector":', block.vectors, ',"payload":', payload, "}"
    )


def _indexes(
    items: ExportedItems, types: dict[str, pa.DataType], fields: dict[str, str]
) -> list[dict[str, str]]:
    """Give the bodies that make payload indexes, one a field that people filter by.

    Texts of which most differ, as titles do, get none: it would take memory and serve nobody.
    """
    first = items.first(_LOOKED_AT)
    found = [{"field_name": ID, "field_schema": "keyword"}]
    found.append({"field_name": COUNT, "field_schema": "integer"})
    for name, kind in types.items():
        known = len(first[name]) - first[name].null_count
        is_single = kind_of(kind) == "text" and not is_list(kind)
        if is_single and 2 * pc.count_distinct(first[name]).as_py() > known:
            continue
        field = fields[name]
        path = field if _RAW_KEY.fullmatch(field) else f'"{field}"'
        found.append({"field_name": path, "field_schema": _SCHEMAS[str(kind_of(kind))]})
    return found
