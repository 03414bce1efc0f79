"""The items of a bundle with given ones among them.

Dimensions: N given items, R items after the update.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recsys.bundle import Bundle
from recsys.data import Entities, FeatureSchema, FeatureTable, Vocabulary, whole_column
from recsys.foundations import DataError
from recsys.updates.given_items import GivenItems
from recsys.updates.placement import Placement


def merge_items(bundle: Bundle, given: GivenItems, placement: Placement) -> Entities:
    """Put the given items in their rows; columns that are not given stay as they were.

    Added items have the training count 0; columns that they lack are missing.

    Raises:
        DataError: A column does not hold what the bundle's holds.
    """
    old, order = bundle.items, placement.order
    there = order >= 0
    counts = np.where(there, old.counts[order], 0)
    # Of each row: its place in the old rows followed by the given ones, and the old one alone.
    sources = order.copy()
    sources[placement.rows] = len(old) + np.arange(len(given))
    ids = pa.concat_arrays([old.vocabulary.ids, given.ids]).take(pa.array(sources))
    features = _features(old.features, given.table, sources, order)
    display = None
    if old.display is not None:
        columns = {
            name: _display(name, whole_column(old.display[name]), given.table, sources, order)
            for name in old.display.column_names
        }
        display = pa.table(columns)
    merged = Entities(Vocabulary.from_ids(ids), counts, features, display)
    return replace(merged, counts=merged.counts.astype(np.int64))


def _features(
    old: FeatureTable, given: pa.Table, sources: NDArray[np.int64], order: NDArray[np.int64]
) -> FeatureTable:
    columns = {}
    for spec in old.schema:
        alone = FeatureSchema((spec,))
        table, rows = FeatureTable(alone, {spec.name: old.columns[spec.name]}, len(old)), order
        if spec.name in given.column_names:
            table, rows = table.followed_by(alone.encode(given)), sources
        columns[spec.name] = table.take(rows).columns[spec.name]
    return FeatureTable(old.schema, columns, len(order))


def _display(
    name: str,
    old: pa.Array,
    given: pa.Table,
    sources: NDArray[np.int64],
    order: NDArray[np.int64],
) -> pa.Array:
    if name not in given.column_names:
        return old.take(pa.array(order, mask=order < 0))
    column = whole_column(given[name])
    try:
        fresh = column if column.type == old.type else column.cast(old.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"The column {name!r} of items must hold {old.type}, as the bundle's does: {error}."
        ) from error
    return pa.concat_arrays([old, fresh]).take(pa.array(sources, mask=sources < 0))
