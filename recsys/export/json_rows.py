"""What the forms that write JSON share: the texts of a block's vectors and columns.

Dimensions: B items of a block.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from recsys.export.exported_items import COUNT, ID, Block, ExportedItems
from recsys.export.json_text import json_values, json_vectors
from recsys.foundations import DataError

_NUMBERS_AT_ONCE = 1 << 20  # of vectors; as text each takes about 12 bytes, and 8 for its place
_MOST_AT_ONCE = 1 << 13  # items, whose other columns may be long


@dataclass(frozen=True)
class JsonRows:
    """The JSON texts of a block.

    Attributes:
        ids: [B], the ids as they are.
        rows: [B], the rows of the bundle.
        vectors: [B], lists.
        fields: `item_id`, `training_count` and the columns by the names of their fields: [B] each,
            null where nothing is known.
    """

    ids: pa.LargeStringArray
    rows: pa.LargeStringArray
    vectors: pa.LargeStringArray
    fields: dict[str, pa.LargeStringArray]


def json_rows(items: ExportedItems, fields: Mapping[str, str], form: str) -> Iterator[JsonRows]:
    """Give all items as JSON texts, in blocks.

    Args:
        items: What is written.
        fields: Column -> field, of those columns that are written.
        form: For the progress.

    Raises:
        DataError: A column holds what JSON cannot say.
    """
    at_once = min(max(_NUMBERS_AT_ONCE // items.dim, 1), _MOST_AT_ONCE)
    for block in items.blocks(form, at_once):
        yield JsonRows(
            ids=block.ids,
            rows=json_values("row", pa.array(block.rows)),
            vectors=json_vectors(block.vectors),
            fields=_fields(block, fields),
        )


def check_length(what: str, ids: pa.LargeStringArray, most: int, form: str) -> None:
    """Check that ids [B] have at most so many bytes in UTF-8.

    Raises:
        DataError: One is longer; the message names it.
    """
    lengths = pc.binary_length(ids)
    longest = pc.max(lengths).as_py() or 0
    if longest > most:
        item = ids[pc.index(lengths, longest).as_py()].as_py()[:60]
        raise DataError(
            f"form={form} takes {what} of at most {most:,} bytes, got {longest:,}: {item!r}..."
        )


def _fields(block: Block, fields: Mapping[str, str]) -> dict[str, pa.LargeStringArray]:
    own = {ID: json_values(ID, block.ids), COUNT: json_values(COUNT, block.counts)}
    return own | {
        field: json_values(column, block.columns[column]) for column, field in fields.items()
    }
