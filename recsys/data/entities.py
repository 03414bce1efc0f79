"""Reading a table of items or users: one row an id."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.data.bad_rows import BadRows
from recsys.data.ids import ids_as_text
from recsys.data.parts import Part, check_columns, join_columns, read_parts
from recsys.data.plain_types import plain_table
from recsys.data.raw import RawEntities
from recsys.data.table_format import TableFormat
from recsys.foundations import ArgumentError, DataError, check_choice

log = logging.getLogger(__name__)


def read_entities(
    paths: str | Path | Sequence[str | Path],
    *,
    format: TableFormat,  # noqa: A002
    id_column: str,
    columns: Sequence[str] | None = None,
    what: str,
    on_bad_rows: str = "error",
    on_repeats: str = "first",
    setting: str | None = None,
) -> RawEntities:
    """Read items or users.

    A row without an id is a bad row. Of rows with one id the first counts: exact repeats are left
    out and counted, conflicting ones also named in a warning. Columns of a text file are text.

    Args:
        paths: A file, folder or URI, or a list of these.
        format: How the files are written.
        id_column: Name of the column of ids; it becomes `id`.
        columns: Other columns to read; None: all.
        what: "item" or "user", for messages.
        on_bad_rows: "error" or "drop".
        on_repeats: Of rows with one id, "first": that one counts; "error": they are refused.
        setting: That names the column of ids, for messages; None: `columns.item_table_id`, or that
            of users.

    Raises:
        MissingFileError: A path leads nowhere.
        DataError: A file, column or row cannot be read; the message names it and its value.
    """
    check_choice("on_bad_rows", on_bad_rows, ("error", "drop"))
    wanted = [name for name in columns or () if name != id_column]
    parts, files = read_parts(
        paths,
        format,
        required=[id_column, *wanted],
        optional=(),
        others=columns is None,
        settings={id_column: setting or f"columns.{what}_table_id"},
    )
    sources = [file.describe() for file in files]
    return _build(
        parts,
        id_column,
        what=what,
        on_bad_rows=on_bad_rows,
        on_repeats=on_repeats,
        sources=sources,
    )


def entities_from_table(
    table: pa.Table,
    *,
    id_column: str,
    what: str,
    on_bad_rows: str = "error",
    name: str = "the table",
    sources: Sequence[dict[str, Any]] = (),
) -> RawEntities:
    """Read items or users from a table in memory, by the rules of `read_entities`.

    Raises:
        DataError: The id column is missing or a row has no id.
    """
    check_choice("on_bad_rows", on_bad_rows, ("error", "drop"))
    check_columns(name, table.column_names, [id_column])
    part = Part(name, plain_table(table, name=name))
    return _build([part], id_column, what=what, on_bad_rows=on_bad_rows, sources=list(sources))


def _build(
    parts: Sequence[Part],
    id_column: str,
    *,
    what: str,
    on_bad_rows: str,
    sources: list[dict[str, Any]],
    on_repeats: str = "first",
) -> RawEntities:
    bad, cleaned = BadRows(), []
    for part in parts:
        part.note_malformed(bad)
        bad.num_rows += len(part.table)
        ids = ids_as_text(part.table[id_column], file=part.name, name=id_column)
        missing = pc.fill_null(pc.equal(ids, ""), True).to_numpy()
        column = part.table[id_column]
        bad.add(f"null {what} id", missing, file=part.name, name=id_column, column=column)
        if id_column != "id" and "id" in part.table.column_names:
            raise ArgumentError(f"{part.name}: a column 'id' stands beside the {what} id.")
        others = {n: part.table[n] for n in part.table.column_names if n != id_column}
        cleaned.append(Part(part.name, pa.table({"id": ids, **others}).filter(pa.array(~missing))))
    bad.refuse(always=on_bad_rows == "error")
    names = dict.fromkeys(name for part in cleaned for name in part.table.column_names)
    table = pa.table({name: join_columns(cleaned, name) for name in names})
    if on_repeats == "error":
        _refuse_repeats(table["id"], what=what)
    return _first_of_each(table, what=what, dropped=bad.counts, sources=sources)


def _refuse_repeats(ids: pa.ChunkedArray, *, what: str) -> None:
    counts = pc.value_counts(ids)
    often = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(often):
        one, more = often[0].as_py(), f" (and {len(often) - 1} more)" if len(often) > 1 else ""
        raise DataError(
            f"The {what} {one['values']!r}{more} stands in {one['counts']} rows; "
            f"each {what} must stand in one."
        )


def _first_of_each(
    table: pa.Table, *, what: str, dropped: dict[str, int], sources: list[dict[str, Any]]
) -> RawEntities:
    """Keep the first row of each id; count repeats and name those that differ."""
    codes = table["id"].combine_chunks().dictionary_encode().indices.to_numpy()
    _, first = np.unique(codes, return_index=True)
    keep = np.zeros(len(table), bool)
    keep[first] = True
    repeats = np.flatnonzero(~keep)
    if not len(repeats):
        return RawEntities(table, dropped, sources)
    firsts = first[codes[repeats]]
    same = np.ones(len(repeats), bool)
    for name in table.column_names:
        column = table[name].combine_chunks()
        same &= equal_values(column.take(pa.array(repeats)), column.take(pa.array(firsts)))
    dropped = dict(dropped)
    if same.any():
        dropped[f"repeated {what}"] = int(same.sum())
    warnings = []
    if not same.all():
        dropped[f"conflicting {what}"] = int((~same).sum())
        named = pc.unique(table["id"].take(pa.array(repeats[~same])))
        shown = ", ".join(repr(each) for each in named.slice(0, 5).to_pylist())
        more = f" and {len(named) - 5} more" if len(named) > 5 else ""
        warnings.append(f"Rows of one {what} id differ; the first one counts: {shown}{more}.")
        log.warning(warnings[0])
    return RawEntities(table.filter(pa.array(keep)), dropped, sources, warnings)


def equal_values(left: pa.Array, right: pa.Array) -> NDArray[np.bool_]:
    """Compare two columns of one type row by row; null equals null and NaN equals NaN.

    Args:
        left: [N]; lists are compared by their values in order, structs by their fields.
        right: [N].

    Returns:
        [N] bool.
    """
    kind = left.type
    null_left, null_right = np.asarray(left.is_null()), np.asarray(right.is_null())
    if pa.types.is_null(kind):
        same = np.ones(len(left), bool)
    elif pa.types.is_struct(kind):
        same = np.ones(len(left), bool)
        for number in range(kind.num_fields):
            same &= equal_values(left.field(number), right.field(number))
    elif isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType):
        same = _equal_lists(left, right)
    else:
        same = np.asarray(pc.fill_null(pc.equal(left, right), False))
        if pa.types.is_floating(kind):
            same |= np.asarray(pc.fill_null(pc.and_(pc.is_nan(left), pc.is_nan(right)), False))
    either = null_left | null_right
    return np.where(either, null_left & null_right, same)


def _equal_lists(left: pa.Array, right: pa.Array) -> NDArray[np.bool_]:
    lengths = [np.asarray(pc.fill_null(pc.list_value_length(side), 0)) for side in (left, right)]
    same: NDArray[np.bool_] = lengths[0] == lengths[1]
    picked = pa.array(same)
    values = [pc.list_flatten(side.filter(picked)) for side in (left, right)]
    owners = np.repeat(np.flatnonzero(same), lengths[0][same])
    same[owners[~equal_values(*values)]] = False
    return same
