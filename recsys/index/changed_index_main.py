"""The main index of a changed one, searched for the rows that did not change.

Dimensions: B queries, M interests of a query, N candidates of the main index, D embedding width,
k results asked for.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged
from recsys.index.exact import ExactIndex
from recsys.index.hidden_rows import HiddenRows
from recsys.index.hits import Hits
from recsys.index.main_index import MainIndex
from recsys.index.row_filter import RowFilter
from recsys.index.scoring import make_hits
from recsys.index.settings import GRAPH_KINDS

_WIDER = 4
_MOST = 8_192  # beyond it, exact search is the faster way


def search_shown(
    main: MainIndex | ExactIndex,
    queries: NDArray[np.float32],
    k: int,
    *,
    exclude: Ragged | None,
    allowed: NDArray[Any] | Ragged | None,
    hidden: HiddenRows,
) -> Hits:
    """Search the rows that are not hidden.

    Lists and exact search pass hidden rows over. A graph walks through them all the same, and where
    those around a query are hidden it would stop before it met others as good; ScaNN knows of none
    that are hidden. There more hits are asked for, and the hidden ones dropped, until k remain.

    Args:
        main: The index.
        queries: [B, M, D].
        k: At least 1.
        exclude: As for `Index.search`.
        allowed: As for `Index.search`.
        hidden: Of the main index.
    """
    rows = RowFilter(len(queries), main.num_candidates, exclude, allowed, hidden)
    if isinstance(main, ExactIndex) or main.kind not in (*GRAPH_KINDS, "scann"):
        return main.search_filtered(queries, k, rows)
    if rows.hidden is None or rows.allowed_rows is not None:  # none are hidden, or most
        return main.search_filtered(queries, k, rows)
    return _search_wider(main, queries, k, rows, hidden)


def _search_wider(
    main: MainIndex, queries: NDArray[np.float32], k: int, rows: RowFilter, hidden: HiddenRows
) -> Hits:
    found: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]] = []
    open_queries, wanted = np.arange(len(queries)), _first_wanted(k, hidden)
    while len(open_queries) and wanted <= _MOST:
        all_of_them = len(open_queries) == len(queries)
        exclude = rows.exclude if all_of_them else rows.exclude.take(open_queries)
        plain = RowFilter(len(open_queries), main.num_candidates, exclude, None)
        hits = main.search_filtered(queries[open_queries], wanted, plain)
        shown = ~hidden.mask[hits.candidate_rows]
        owners = hits.lists.owners()
        counts = np.bincount(owners[shown], minlength=len(open_queries))
        done = (counts >= k) | (hits.lengths < wanted)
        shown &= done[owners]
        found.append((open_queries[owners[shown]], hits.candidate_rows[shown], hits.scores[shown]))
        open_queries, wanted = open_queries[~done], _WIDER * wanted
    if len(open_queries):
        hits = main.exact.search_filtered(queries[open_queries], k, rows.take(open_queries))
        owners = np.repeat(open_queries, hits.lengths)
        found.append((owners, hits.candidate_rows, hits.scores))
    nothing = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))
    owners, given, scores = (np.concatenate(part) for part in zip(nothing, *found, strict=True))
    return make_hits(owners, given, scores, k=k, num_queries=len(queries))


def _first_wanted(k: int, hidden: HiddenRows) -> int:
    """Ask for so many that k shown ones are nearly always among them, if chance hides rows."""
    count = min(k, len(hidden.mask))
    dropped = count * hidden.count / hidden.num_shown
    return k + math.ceil(dropped + 2 * math.sqrt(dropped)) + 1
