"""Tables of user and item ids, with or without a column that orders them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recsys.data.bad_rows import BadRows, RowCheck
from recsys.data.ids import ids_as_text
from recsys.data.numbers import as_numbers
from recsys.data.parts import Part, check_columns, join_columns, read_parts
from recsys.data.table_format import TableFormat
from recsys.foundations import DataError

_IDS = ("user_id", "item_id")


def read_id_pairs(
    path: str | Path,
    *,
    format: TableFormat,  # noqa: A002
    orders: Sequence[str] = (),
) -> pa.Table:
    """Read columns user_id and item_id, and the first of `orders` that is there.

    Args:
        path: A file, folder or URI of CSV, TSV or Parquet; ids are kept digit for digit as text.
        format: How the files are written.
        orders: Columns of numbers, of which one must be there; none: only ids are read.

    Returns:
        user_id, item_id (large_string) and the order (float64), in input order.

    Raises:
        MissingFileError: The path leads nowhere.
        DataError: A column is missing or a row holds no id or no number; names file and row.
    """
    parts, _ = read_parts(path, format, required=_IDS, optional=orders, others=False)
    return _clean(parts, orders)


def id_pairs_from_table(table: pa.Table, *, name: str, orders: Sequence[str] = ()) -> pa.Table:
    """Take the same from a table in memory, which messages call `name`.

    Raises:
        DataError: See `read_id_pairs`.
    """
    return _clean([Part(name, table)], orders)


def _clean(parts: Sequence[Part], orders: Sequence[str]) -> pa.Table:
    """Give ids as text and the order as numbers; refuse rows without them."""
    bad, cleaned = BadRows(), []
    for part in parts:
        check_columns(part.name, part.table.column_names, _IDS)
        order = [column for column in orders if column in part.table.column_names][:1]
        if orders and not order:
            wanted = " or ".join(repr(column) for column in orders)
            raise DataError(f"{part.name} must have a column {wanted}.")
        part.note_malformed(bad)
        bad.num_rows += len(part.table)
        check = RowCheck(part.name, part.table, bad, np.ones(len(part.table), bool))
        columns = {}
        for column in _IDS:
            columns[column] = ids_as_text(part.table[column], file=part.name, name=column)
            check.leave_out(f"null {column}", pc.is_null(columns[column]).to_numpy(), column)
        for column in order:
            numbers, _ = as_numbers(part.table[column])
            check.leave_out(f"{column} that is no number", np.isnan(numbers), column)
            columns[column] = pa.chunked_array([pa.array(numbers)])
        cleaned.append(Part(part.name, pa.table(columns)))
    if bad.counts:
        reason = next(iter(bad.counts))
        raise DataError(f"{bad.first[reason]} ({reason}); {sum(bad.counts.values())} bad rows.")
    return pa.table({column: join_columns(cleaned, column) for column in columns})
