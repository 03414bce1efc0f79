"""Answers as files and tables: written a block at a time, so that memory is bounded."""

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from recsys.foundations import atomic_file
from recsys.serving.answers import Answers
from recsys.serving.item_names import item_names
from recsys.serving.lookup import Lookup

log = logging.getLogger(__name__)
_MOST_QUERIES_SHOWN = 20


def write_answers(
    blocks: Iterator[Answers], path: Path, query_column: str, *, with_fallback: bool
) -> int:
    """Write one row an answer to a Parquet file that appears when it is whole.

    Args:
        blocks: At least one.
        path: The file.
        query_column: `user_id` or `query_item_id`.
        with_fallback: Whether the column `fallback` is written.

    Returns:
        The number of rows.
    """
    num_rows = 0
    with atomic_file(path) as temporary:
        writer: pq.ParquetWriter | None = None
        for block in blocks:
            table = block.to_arrow(query_column, with_fallback=with_fallback)
            writer = writer or pq.ParquetWriter(temporary, table.schema)
            writer.write_table(table)
            num_rows += table.num_rows
        if writer is not None:
            writer.close()
    return num_rows


def show_answers(lookup: Lookup, blocks: Iterator[Answers], path: Path | None) -> None:
    """Write the nearest items of items to a file, or print those of the first items."""
    if path is None:
        first = next(blocks)
        _print_neighbours(lookup, first.to_arrow("query_item_id", with_fallback=False))
    else:
        num_rows = write_answers(blocks, path, "query_item_id", with_fallback=False)
        log.info("%d rows: %s", num_rows, path)


def _print_neighbours(lookup: Lookup, found: pa.Table) -> None:
    queries = found["query_item_id"].unique()
    chosen = queries.slice(0, _MOST_QUERIES_SHOWN)
    rows = found.filter(pc.is_in(found["query_item_id"], value_set=chosen))
    names = item_names(lookup, pa.concat_arrays([chosen, rows["item_id"].unique()]).unique())
    table = Table(title="Nearest items", title_justify="left")
    for heading, side in (("of", "left"), ("rank", "right"), ("item", "left"), ("score", "right")):
        table.add_column(heading, justify=side)  # type: ignore[arg-type]
    for row in rows.to_pylist():
        query, item = names[row["query_item_id"]], names[row["item_id"]]
        table.add_row(query, str(row["rank"]), item, f"{row['score']:.4f}")
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    if len(queries) > len(chosen):
        console.print(f"... and {len(queries) - len(chosen)} more items; output= writes them all.")
