"""Which items may be given, as rows, and the popular ones among them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.bundle import Bundle
from recsys.evaluation import PopularityList
from recsys.foundations import Ragged
from recsys.index import Hits
from recsys.serving.ids import Ids, as_ids
from recsys.serving.where import Where


@dataclass(frozen=True)
class ItemFilter:
    """The filter of one request.

    Attributes:
        excluded: Rising rows that no query gets.
        allowed: The only rows that may be given, rising; None: all.
    """

    excluded: NDArray[np.int64]
    allowed: NDArray[np.int64] | None


class ItemFilters:
    """Makes the filters of requests to one bundle.

    Args:
        bundle: The bundle.
    """

    def __init__(self, bundle: Bundle) -> None:
        self._bundle, self._where = bundle, Where(bundle)

    def make(self, *, exclude: Ids | None, allowed: Ids | None, where: str | None) -> ItemFilter:
        """Make a filter.

        Args:
            exclude: Ids; an unknown one excludes nothing.
            allowed: Ids; an unknown one allows nothing. None: all.
            where: An expression over item columns that must hold, too; None: nothing must.

        Raises:
            ArgumentError: The expression is wrong; the message says where.
        """
        excluded = np.zeros(0, np.int64) if exclude is None else self._candidates(exclude)
        rows = None if allowed is None else self._candidates(allowed)
        if where is not None:
            mask = self._where.mask(where)
            rows = np.flatnonzero(mask) if rows is None else rows[mask[rows]]
        return ItemFilter(excluded, rows)

    def _candidates(self, ids: Ids) -> NDArray[np.int64]:
        rows = np.unique(self._bundle.items.vocabulary.rows(as_ids(ids)))
        return rows[(rows >= 0) & (rows < self._bundle.num_items)]


def popular_hits(bundle: Bundle, k: int, exclude: Ragged, items: ItemFilter) -> Hits:
    """Give each query the items chosen most often in training; scores are the counts.

    Withdrawn items are not given; those that an update added have the count 0.

    Args:
        bundle: The bundle.
        k: At least 1.
        exclude: B lists of rows.
        items: `excluded` must stand in `exclude` already.
    """
    counts, rows = bundle.item_counts, bundle.live_rows
    if items.allowed is not None:
        rows = np.intersect1d(rows, items.allowed, assume_unique=True)
    places = np.full(len(counts), -1)  # of each item among those allowed
    places[rows] = np.arange(len(rows))
    taken = places[exclude.rows]
    there = taken >= 0
    taken_lists = Ragged.from_pairs(exclude.owners()[there], taken[there], len(exclude))
    best = PopularityList(counts[rows]).top(k, taken_lists)
    chosen = rows[best.rows]
    return Hits(best.offsets, chosen, counts[chosen].astype(np.float32))
