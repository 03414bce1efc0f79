"""What people are shown of an item in a line."""

import pyarrow as pa
from rich.text import Text

from recsys.serving.lookup import Lookup


def item_names(lookup: Lookup, ids: pa.Array) -> dict[str, Text]:
    """Give id and title of items, as plain text: a title may hold what looks like markup."""
    shown = lookup.describe_items(ids)
    names = [name for name in shown.column_names if name != "item_id"][:1]
    return {
        row["item_id"]: Text("  ".join([row["item_id"], *(str(row[name]) for name in names)]))
        for row in shown.to_pylist()
    }
