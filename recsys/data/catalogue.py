"""Who gets a row: users and items of the log and of their tables, in a fixed random order."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.data.dataset import Entities
from recsys.data.feature_columns import is_list, is_text, whole_column
from recsys.data.feature_schema import FeatureOptions
from recsys.data.features import FeatureSchema
from recsys.data.raw import RawEntities
from recsys.data.vocabulary import Vocabulary
from recsys.foundations import make_numpy_generator


@dataclass(frozen=True)
class Assignment:
    """Which id got which row.

    Attributes:
        vocabulary: Ids by row.
        num_main: Rows below it: items that are candidates, users with training events.
        rows_of_codes: [codes], int64, the row of each code of the log; -1 where it has none.
        untrained: Ids of the table without a training event that have a row.
        left_out: Ids of the table without a row.
        without_table: Ids with a training event that the table lacks; none without a table.
    """

    vocabulary: Vocabulary
    num_main: int
    rows_of_codes: NDArray[np.int64]
    untrained: int
    left_out: int
    without_table: pa.LargeStringArray


def assign_items(
    ids: pa.LargeStringArray,
    trained: NDArray[np.bool_],
    used: NDArray[np.bool_],
    table_ids: pa.ChunkedArray | None,
    *,
    has_features: bool,
    seed: int,
) -> Assignment:
    """Give items their rows: the candidates first, then those met only in validation or test.

    Candidates are the items with training events and, where items have features, every item of
    the table. Rows are a seeded permutation of the sorted ids, so that they carry no popularity.

    Args:
        ids: Of the log, sorted; position = code.
        trained: [codes], whether the item has training events.
        used: [codes], whether any part has it.
        table_ids: Ids of the items' table, or None.
        has_features: Whether items have features.
        seed: Of the permutation.
    """
    known = _table_ids(table_ids)
    main = [ids.filter(pa.array(trained)), *([known] if has_features else [])]
    rest = [ids.filter(pa.array(used))]
    log = (ids, trained)
    return _assign("items", main=main, rest=rest, log=log, table_ids=table_ids, seed=seed)


def assign_users(
    ids: pa.LargeStringArray,
    trained: NDArray[np.bool_],
    used: NDArray[np.bool_],
    table_ids: pa.ChunkedArray | None,
    *,
    has_features: bool,
    seed: int,
) -> Assignment:
    """Give users their rows: those with training events first, then the others that are known.

    The others were met in validation or test only or, where users have features, stand in the
    users' table only. The arguments are as in `assign_items`.
    """
    known = _table_ids(table_ids)
    rest = [ids.filter(pa.array(used)), *([known] if has_features else [])]
    main = [ids.filter(pa.array(trained))]
    log = (ids, trained)
    return _assign("users", main=main, rest=rest, log=log, table_ids=table_ids, seed=seed)


def build_entities(
    rows: Assignment,
    counts_of_codes: NDArray[np.int64],
    raw: RawEntities | None,
    options: Mapping[str, FeatureOptions],
) -> Entities:
    """Fit the features on the entities with training events and encode all rows.

    Args:
        rows: Who got which row.
        counts_of_codes: [codes], training events.
        raw: The table, or None; entities that it lacks have every feature missing.
        options: Column -> how to encode it.

    Raises:
        DataError: A column is absent or does not hold what its kind needs.
    """
    vocabulary, known = rows.vocabulary, rows.rows_of_codes >= 0
    counts = np.zeros(len(vocabulary), np.int64)
    counts[rows.rows_of_codes[known]] = counts_of_codes[known]
    table = pa.table({"id": vocabulary.ids})
    if raw is not None:
        places = pc.index_in(vocabulary.ids, value_set=whole_column(raw.table["id"]))
        table = raw.table.take(places)  # a null place gives a row of nulls
    schema = FeatureSchema.fit(table.filter(pa.array(counts > 0)), options)
    return Entities(vocabulary, counts, schema.encode(table), _display(table))


def infer_features(table: pa.Table, *, but: Collection[str] = ()) -> dict[str, FeatureOptions]:
    """Choose every column that can be a feature as it is.

    Text columns in which most values differ, such as titles and addresses, are left out, as are
    columns that hold nothing.

    Args:
        table: One row an entity.
        but: Columns that are not wanted.
    """
    chosen = {}
    for name in table.column_names:
        column = table[name]
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        known = len(column) - column.null_count
        if name in but or not known:
            continue
        if not (is_text(kind) and 2 * pc.count_distinct(column).as_py() > known):
            chosen[name] = FeatureOptions()
    return chosen


def _assign(
    name: str,
    *,
    main: list[pa.Array],
    rest: list[pa.Array],
    log: tuple[pa.LargeStringArray, NDArray[np.bool_]],
    table_ids: pa.ChunkedArray | None,
    seed: int,
) -> Assignment:
    first = pc.unique(pa.concat_arrays(main))
    others = pc.unique(pa.concat_arrays(rest))
    others = others.filter(pc.invert(pc.is_in(others, value_set=first)))
    ordered = [_shuffle(first, seed, name), _shuffle(others, seed, f"other {name}")]
    vocabulary = Vocabulary(pa.concat_arrays(ordered))
    ids, trained = log
    table, trained_ids = _table_ids(table_ids), ids.filter(pa.array(trained))
    with_row = pc.is_in(table, value_set=vocabulary.ids)
    with_events = pc.is_in(table, value_set=trained_ids)
    unlisted = trained_ids.filter(pc.invert(pc.is_in(trained_ids, value_set=table)))
    num_with_row = pc.sum(with_row).as_py() or 0
    num_with_events = pc.sum(with_events).as_py() or 0
    return Assignment(
        vocabulary,
        len(first),
        vocabulary.rows(ids),
        untrained=num_with_row - num_with_events,
        left_out=len(table) - num_with_row,
        without_table=trained_ids.slice(0, 0) if table_ids is None else unlisted,
    )


def _shuffle(ids: pa.Array, seed: int, name: str) -> pa.Array:
    ordered = ids.take(pc.sort_indices(ids))
    return ordered.take(pa.array(make_numpy_generator(seed, "rows", name).permutation(len(ids))))


def _table_ids(table_ids: pa.ChunkedArray | None) -> pa.LargeStringArray:
    return pa.array([], pa.large_string()) if table_ids is None else whole_column(table_ids)


def _display(table: pa.Table) -> pa.Table | None:
    """Keep columns of one plain value a row, the title first."""
    names = [
        name
        for name in table.column_names[1:]
        if not is_list(table[name].type) and not pa.types.is_nested(table[name].type)
    ]
    names.sort(key=lambda name: name.lower() != "title")  # stable: the others keep their order
    return table.select(names) if names else None
