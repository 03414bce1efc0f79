"""The vectors of the stored users as Parquet, so that an engine can be asked offline."""

from pathlib import Path

import pyarrow.parquet as pq

from recsys.bundle import Bundle
from recsys.foundations import Progress
from recsys.serving import Lookup

_AT_ONCE = 8192


def write_users(bundle: Bundle, folder: Path) -> int:
    """Write `users.parquet`: user_id, interest where users have several vectors, vector.

    Args:
        bundle: Every user that it holds is embedded, a block at a time.
        folder: Exists.

    Returns:
        The number of users.
    """
    lookup, ids = Lookup(bundle), bundle.users.vocabulary.ids
    writer: pq.ParquetWriter | None = None
    with Progress("embedding users", len(ids), "users") as progress:
        for start in range(0, max(len(ids), 1), _AT_ONCE):
            block = ids.slice(start, _AT_ONCE)
            table = lookup.embed_users(block)
            path = folder / "users.parquet"
            writer = writer or pq.ParquetWriter(path, table.schema, use_dictionary=["user_id"])
            writer.write_table(table)
            progress.advance(len(block))
    if writer is not None:
        writer.close()
    return len(ids)
