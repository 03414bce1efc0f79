"""Interactions that a caller gives, in place of those that the bundle holds."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recsys.bundle import Bundle
from recsys.data import NO_TIME, RawLog, Vocabulary, read_moments
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
            Numbers in `timestamp` are read in the unit in which most are dates; where none is a
            date in any, they are an order.
        bundle: Gives the rows of items; items without a vector are left out, with a warning.

    Attributes:
        users: The users, in the order of their first mention.
        lists: One list of candidates' rows for each user, and an empty one behind them.
        times: As many lists of when each was met, int64, in µs; `NO_TIME` where that is not known,
            or the bundle's clock tells no time.

    Raises:
        DataError: The table lacks a column, or a time is missing or cannot be read.
        ArgumentError: An id is null or no id.
    """

    def __init__(self, histories: Any, bundle: Bundle) -> None:
        table = histories.table if isinstance(histories, RawLog) else histories
        if isinstance(table, Mapping):
            owners, items = _flat(table)
            self._read(as_ids(list(table)), owners, items, _unknown(len(items)), bundle)
            return
        table = as_arrow(table)
        absent = [name for name in ("user_id", "item_id") if name not in table.column_names]
        if absent:
            raise DataError(f"The histories lack a column {absent[0]!r}.")
        users, items = as_ids(table["user_id"]), as_ids(table["item_id"])
        order, times = np.arange(table.num_rows), _unknown(table.num_rows)
        if "timestamp" in table.column_names:
            order, times = _order_and_times(histories, table, bundle.clock)
        distinct = Vocabulary.from_ids(users.unique())
        owners = distinct.rows(users)[order]
        self._read(distinct.ids, owners, items.take(pa.array(order)), times[order], bundle)

    def _read(
        self,
        users: pa.LargeStringArray,
        owners: Any,
        items: pa.LargeStringArray,
        times: NDArray[np.int64],
        bundle: Bundle,
    ) -> None:
        rows = bundle.items.vocabulary.rows(items)
        kept = (rows >= 0) & (rows < bundle.num_items)
        if not kept.all():
            log.warning("%d events of the histories name items without a vector.", (~kept).sum())
        self.users = Vocabulary.from_ids(users)
        # Owners reach len(users) - 1: the last list stays empty.
        self.lists = Ragged.from_pairs(owners[kept], rows[kept], len(users) + 1)
        self.times = Ragged.from_pairs(owners[kept], times[kept], len(users) + 1)


def _order_and_times(
    histories: Any, table: pa.Table, clock: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the rows of a table oldest first, and the time of each row in µs: [N], [N]."""
    moments = None
    if isinstance(histories, RawLog):
        if histories.clock == clock == "time":
            moments = table["timestamp"].to_numpy()
    elif clock == "time":
        moments = read_moments(table, "timestamp", name="The table of histories")
    if moments is None:
        order = pc.array_sort_indices(table["timestamp"]).to_numpy().astype(np.int64)
        return order, _unknown(table.num_rows)
    return np.argsort(moments, kind="stable"), moments


def _unknown(num_rows: int) -> NDArray[np.int64]:
    return np.full(num_rows, NO_TIME)


def _flat(lists: Mapping[str, Sequence[str]]) -> tuple[Any, pa.LargeStringArray]:
    owners = np.repeat(np.arange(len(lists)), [len(each) for each in lists.values()])
    return owners, as_ids([item for each in lists.values() for item in each])
