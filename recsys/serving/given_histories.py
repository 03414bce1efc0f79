"""Interactions that a caller gives, in place of those that the bundle holds."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recsys.bundle import Bundle
from recsys.data import RawLog, Vocabulary
from recsys.foundations import DataError, Ragged
from recsys.serving.frames import as_arrow
from recsys.serving.ids import as_ids

log = logging.getLogger(__name__)

Histories: TypeAlias = RawLog | pa.Table | Mapping[str, Sequence[str]]


class GivenHistories:
    """Lists of items by user, oldest first.

    Args:
        histories: A log as read; a table of `user_id` and `item_id`, whose rows stand oldest first
            unless a column `timestamp` orders them; or lists of item ids, oldest first, by user.
        bundle: Gives the rows of items; items without a vector are left out, with a warning.

    Attributes:
        users: The users, in the order of their first mention.
        lists: One list of candidates' rows for each user, and an empty one behind them.

    Raises:
        DataError: The table lacks a column.
        ArgumentError: An id is null or no id.
    """

    def __init__(self, histories: Any, bundle: Bundle) -> None:
        table = histories.table if isinstance(histories, RawLog) else histories
        if isinstance(table, Mapping):
            self._read(as_ids(list(table)), *_flat(table), bundle)
            return
        table = as_arrow(table)
        absent = [name for name in ("user_id", "item_id") if name not in table.column_names]
        if absent:
            raise DataError(f"The histories lack a column {absent[0]!r}.")
        users = as_ids(table["user_id"])
        order = np.arange(table.num_rows)
        if "timestamp" in table.column_names:
            order = pc.array_sort_indices(table["timestamp"]).to_numpy()
        distinct = Vocabulary.from_ids(users.unique())
        owners = distinct.rows(users)[order]
        self._read(distinct.ids, owners, as_ids(table["item_id"]).take(pa.array(order)), bundle)

    def _read(
        self, users: pa.LargeStringArray, owners: Any, items: pa.LargeStringArray, bundle: Bundle
    ) -> None:
        rows = bundle.items.vocabulary.rows(items)
        kept = (rows >= 0) & (rows < bundle.num_items)
        if not kept.all():
            log.warning("%d events of the histories name items without a vector.", (~kept).sum())
        self.users = Vocabulary.from_ids(users)
        # Owners reach len(users) - 1: the last list stays empty.
        self.lists = Ragged.from_pairs(owners[kept], rows[kept], len(users) + 1)


def _flat(lists: Mapping[str, Sequence[str]]) -> tuple[Any, pa.LargeStringArray]:
    owners = np.repeat(np.arange(len(lists)), [len(each) for each in lists.values()])
    return owners, as_ids([item for each in lists.values() for item in each])
