"""Items as one Parquet file, for engines and tools that read columns."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from recsys.export.engine_names import field_names, parquet_field
from recsys.export.exported_items import COUNT, ID, VECTOR, Block, ExportedItems
from recsys.export.request import ExportRequest

_NUMBERS_AT_ONCE = 1 << 24  # of vectors, 64 MiB: a row group
_MOST_AT_ONCE = 1 << 17


def write_parquet(items: ExportedItems, request: ExportRequest, folder: Path) -> None:
    """Write `items.parquet`: item_id, vector fixed_size_list<float32>[E], training_count, columns.

    Columns keep their types, but for dictionaries, which are decoded, and a name that one of the
    first three has, which gets a number behind it.

    Args:
        items: What is written, a row group at a time.
        request: Is not read.
        folder: Exists.
    """
    del request
    fields = field_names(items.types, parquet_field, (ID, VECTOR, COUNT))
    at_once = min(max(_NUMBERS_AT_ONCE // items.dim, 1), _MOST_AT_ONCE)
    writer: pq.ParquetWriter | None = None
    for block in items.blocks("parquet", at_once):
        table = _table(block, fields)
        # Vectors are noise: a dictionary or a compressor would only cost time.
        plain = {name: "NONE" if name == VECTOR else "zstd" for name in table.column_names}
        others = [name for name in table.column_names if name != VECTOR]
        writer = writer or pq.ParquetWriter(
            folder / "items.parquet", table.schema, use_dictionary=others, compression=plain
        )
        writer.write_table(table, row_group_size=max(len(block), 1))
    if writer is not None:
        writer.close()


def _table(block: Block, fields: dict[str, str]) -> pa.Table:
    columns = {
        ID: block.ids.cast(pa.string()),
        VECTOR: block.vector_lists(),
        COUNT: block.counts,
    }
    return pa.table(columns | {fields[name]: block.columns[name] for name in fields})
