"""Neighbours of items, and what is known of items.

Dimensions: N items, E width of the vectors.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from recsys.bundle import Bundle
from recsys.data import is_list
from recsys.foundations import ArgumentError, Progress, Ragged
from recsys.serving.answers import Answers, vector_table
from recsys.serving.embed_items import embed_items
from recsys.serving.frames import as_arrow
from recsys.serving.ids import Ids, as_ids, refuse_unknown
from recsys.serving.item_filter import ItemFilters
from recsys.serving.lists import concatenated, repeated

_NEIGHBOURS_AT_ONCE = 8192


class ItemLookup:
    """Answers about items.

    Args:
        bundle: The bundle.
        filters: Of its items.
    """

    def __init__(self, bundle: Bundle, filters: ItemFilters) -> None:
        self._bundle, self._filters = bundle, filters

    def neighbours(
        self,
        items: Ids | None,
        *,
        k: int,
        exact: bool,
        exclude: Ids | None,
        allowed: Ids | None,
        where: str | None,
    ) -> Iterator[Answers]:
        """Answer items a block at a time; see `Lookup.neighbours`."""
        if k < 1:
            raise ArgumentError(f"`k` must be at least 1, got {k}.")
        bundle = self._bundle
        rows = self.rows(None if items is None else as_ids(items).unique())
        limits = self._filters.make(exclude=exclude, allowed=allowed, where=where)
        index = bundle.exact if exact else bundle.index
        with Progress("finding neighbours", len(rows), "items") as progress:
            for start in range(0, max(len(rows), 1), _NEIGHBOURS_AT_ONCE):
                block = rows[start : start + _NEIGHBOURS_AT_ONCE]
                vectors = np.array(bundle.item_vectors[block])
                bias = bundle.model.bias_place
                if bias is not None:
                    vectors[:, bias] = 0  # the bias of a neighbour is no likeness
                itself = Ragged(np.arange(len(block) + 1), block)
                barred = concatenated(itself, repeated(limits.excluded, len(block)))
                hits = index.search(vectors, k, exclude=barred, allowed=limits.allowed)
                names = bundle.items.vocabulary.ids_of
                no_fallback = np.zeros(len(block), np.bool_)
                yield Answers(names(block), names(hits.candidate_rows), hits, no_fallback)
                progress.advance(len(block))

    def embed(self, items: Any) -> pa.Table:
        """Embed items; see `Lookup.embed_items`."""
        vocabulary = self._bundle.items.vocabulary
        if isinstance(items, pd.DataFrame):
            items = as_arrow(items)
        if not isinstance(items, pa.Table):
            rows = self.rows(None if items is None else as_ids(items))
            return vector_table("item_id", vocabulary.ids_of(rows), self._bundle.item_vectors[rows])
        if "item_id" not in items.column_names:
            raise ArgumentError("`items` must be ids, or a table with a column 'item_id'.")
        ids = as_ids(items["item_id"])
        rows = vocabulary.rows(ids)
        rows = np.where(rows < self._bundle.num_model_items, rows, -1)
        features = self._bundle.items.features.schema.encode(items)
        return vector_table("item_id", ids, embed_items(self._bundle.model, rows, features))

    def describe(self, items: Ids) -> pa.Table:
        """Describe items to people; see `Lookup.describe_items`."""
        ids = as_ids(items)
        rows = self._bundle.items.vocabulary.rows(ids)
        refuse_unknown(ids, rows < 0)
        columns = {"item_id": ids.cast(pa.string())}
        display = self._bundle.items.display
        if display is not None:
            shown = display.take(pa.array(rows))
            columns |= {
                name: shown[name]
                for name in shown.column_names
                if name != "item_id" and not is_list(shown[name].type)
            }
        return pa.table(columns)

    def rows(self, ids: pa.LargeStringArray | None) -> NDArray[np.int64]:
        """Give the rows of candidates by id, in the order asked; None: of all but withdrawn ones.

        Raises:
            UnknownIdError: One is no candidate.
        """
        if ids is None:
            return self._bundle.live_rows
        rows = self._bundle.items.vocabulary.rows(ids)
        refuse_unknown(ids, (rows < 0) | (rows >= self._bundle.num_items))
        return rows
