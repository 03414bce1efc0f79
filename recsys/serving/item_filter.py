"""Which items may be given, as rows, and the popular ones among them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.bundle import Bundle
from recsys.evaluation import PopularityList
from recsys.foundations import Ragged
from recsys.index import Hits
from recsys.serving.ids import Ids, as_ids


@dataclass(frozen=True)
class ItemFilter:
    """The filter of one request.

    Attributes:
        excluded: Rising rows that no query gets.
        allowed: The only rows that may be given, rising; None: all.
    """

    excluded: NDArray[np.int64]
    allowed: NDArray[np.int64] | None


def make_filter(bundle: Bundle, *, exclude: Ids | None, allowed: Ids | None) -> ItemFilter:
    """Look up the ids of a filter; an unknown one excludes and allows nothing."""
    excluded = np.zeros(0, np.int64) if exclude is None else _candidates(bundle, exclude)
    return ItemFilter(excluded, None if allowed is None else _candidates(bundle, allowed))


def popular_hits(bundle: Bundle, k: int, exclude: Ragged, items: ItemFilter) -> Hits:
    """Give each query the items chosen most often in training; scores are the counts.

    Args:
        bundle: The bundle.
        k: At least 1.
        exclude: B lists of rows.
        items: `excluded` must stand in `exclude` already.
    """
    counts = bundle.item_counts
    rows = np.arange(len(counts)) if items.allowed is None else items.allowed
    places = np.full(len(counts), -1)  # of each item among those allowed
    places[rows] = np.arange(len(rows))
    taken = places[exclude.rows]
    there = taken >= 0
    taken_lists = Ragged.from_pairs(exclude.owners()[there], taken[there], len(exclude))
    best = PopularityList(counts[rows]).top(k, taken_lists)
    chosen = rows[best.rows]
    return Hits(best.offsets, chosen, counts[chosen].astype(np.float32))


def _candidates(bundle: Bundle, ids: Ids) -> NDArray[np.int64]:
    rows = np.unique(bundle.items.vocabulary.rows(as_ids(ids)))
    return rows[(rows >= 0) & (rows < bundle.num_items)]
