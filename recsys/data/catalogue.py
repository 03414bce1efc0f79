"""Who gets a row: users and items of the log and of their tables, in a fixed random order."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.data.dataset import Entities
from recsys.data.feature_columns import is_list, is_text, whole_column
from recsys.data.feature_encoding import infer_kind
from recsys.data.feature_schema import FeatureOptions
from recsys.data.features import FeatureSchema
from recsys.data.id_lists import KnownIds
from recsys.data.raw import RawEntities
from recsys.data.text_words import order_of_texts
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
    ids: KnownIds,
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
        ids: Of the log, by code.
        trained: [codes], whether the item has training events.
        used: [codes], whether any part has it.
        table_ids: Ids of the items' table, or None.
        has_features: Whether items have features.
        seed: Of the permutation.
    """
    candidates = _Candidates.of(ids, trained, used, table_ids, keep_all=has_features)
    main = candidates.trained | (candidates.listed & has_features)
    return _assign("items", candidates, main, candidates.used, seed)


def assign_users(
    ids: KnownIds,
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
    candidates = _Candidates.of(ids, trained, used, table_ids, keep_all=has_features)
    rest = candidates.used | (candidates.listed & has_features)
    return _assign("users", candidates, candidates.trained, rest, seed)


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


@dataclass(frozen=True)
class _Candidates:
    """Who may get a row: C ids of the log, then those that only the table has.

    Attributes:
        num_codes: C.
        texts: [E], the ids, distinct.
        order: [E], the positions that sort them.
        trained: [E] bool, has training events.
        used: [E] bool, any part has it.
        listed: [E] bool, stands in the table.
        num_listed: Rows of the table; None without a table.
    """

    num_codes: int
    texts: pa.LargeStringArray
    order: NDArray[np.int64]
    trained: NDArray[np.bool_]
    used: NDArray[np.bool_]
    listed: NDArray[np.bool_]
    num_listed: int | None

    @classmethod
    def of(
        cls,
        ids: KnownIds,
        trained: NDArray[np.bool_],
        used: NDArray[np.bool_],
        table_ids: pa.ChunkedArray | None,
        *,
        keep_all: bool,
    ) -> "_Candidates":
        """Put the ids of the log and, where all of them count, those of the table together."""
        nobody = np.zeros(len(ids), bool)
        if table_ids is None:
            return cls(len(ids), ids.texts, ids.order, trained, used, nobody, None)
        table = whole_column(table_ids)
        places = pc.index_in(ids.texts, value_set=table)
        listed = np.asarray(pc.is_valid(places))
        texts, order = ids.texts, ids.order
        if keep_all:
            extra = np.ones(len(table), bool)
            extra[np.asarray(places.drop_null())] = False
            texts = pa.concat_arrays([texts, table.filter(pa.array(extra))])
            order = order_of_texts(texts)
        absent = np.zeros(len(texts) - len(ids), bool)
        return cls(
            len(ids),
            texts,
            order,
            np.append(trained, absent),
            np.append(used, absent),
            np.append(listed, ~absent),
            len(table),
        )


def _assign(
    name: str,
    candidates: _Candidates,
    main: NDArray[np.bool_],
    rest: NDArray[np.bool_],
    seed: int,
) -> Assignment:
    """Give the rows of `main`, then those of the rest: [E] bool each."""
    order, others = candidates.order, rest & ~main
    first = _shuffle(order[main[order]], seed, name)
    chosen = np.concatenate([first, _shuffle(order[others[order]], seed, f"other {name}")])
    rows = np.full(len(order), -1, np.int64)
    rows[chosen] = np.arange(len(chosen))
    listed, trained = candidates.listed, candidates.trained
    num_with_row = int(np.count_nonzero(listed & (main | others)))
    unlisted = trained & ~listed if candidates.num_listed is not None else np.zeros_like(trained)
    return Assignment(
        Vocabulary(candidates.texts.take(pa.array(chosen))),
        len(first),
        rows[: candidates.num_codes],
        untrained=num_with_row - int(np.count_nonzero(listed & trained)),
        left_out=(candidates.num_listed or 0) - num_with_row,
        without_table=candidates.texts.take(pa.array(order[unlisted[order]])),
    )


def _shuffle(rising: NDArray[np.int64], seed: int, name: str) -> NDArray[np.int64]:
    return rising[make_numpy_generator(seed, "rows", name).permutation(len(rising))]


def _display(table: pa.Table) -> pa.Table | None:
    """Keep columns of plain values, one or a list of them a row, the title first.

    Vectors are left out: people do not read them, and nobody filters by them.
    """
    names = [name for name in table.column_names[1:] if _can_be_shown(table[name])]
    names.sort(key=lambda name: name.lower() != "title")  # stable: the others keep their order
    return table.select(names) if names else None


def _can_be_shown(column: pa.ChunkedArray) -> bool:
    if not is_list(column.type):
        return not pa.types.is_nested(column.type)
    value = column.type.value_type
    plain = is_text(value) or pa.types.is_integer(value) or pa.types.is_boolean(value)
    return plain and infer_kind(column, None) == "multi"
