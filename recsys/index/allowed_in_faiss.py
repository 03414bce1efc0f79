"""The rows that one search may give, as FAISS's own filter, and when exact search is better.

Dimensions: C candidates, N of them allowed, k results asked for.
"""

from functools import lru_cache
from typing import Any

import faiss

from recsys.index.row_filter import RowFilter
from recsys.index.settings import GRAPH_KINDS, LIST_KINDS

_faiss: Any = faiss  # its type stubs lack some of the names it has
# A place of the graph that is visited costs as much as scoring 50 allowed rows for one query alone,
# and 750 for many at once (docs/performance.md, Filter). In between both lose alike.
_ROWS_A_PLACE = 200
# Of an inverted file it is 2 allowed rows for each row of the lists that a search without a filter
# reads, and 8 or more.
_ROWS_A_LISTED_ROW = 4
_SMALLEST_SHARE_OF_FLAT = 1 / 8  # of the catalogue; below it, the rows alone are read faster


def exact_is_better(inner: Any, kind: str, breadth: int, k: int, rows: RowFilter) -> bool:
    """Tell whether scoring all allowed rows is cheaper than a search that is as good as without.

    A search keeps its quality where it looks 1 / share times as far: as many allowed candidates
    are then met as candidates without a filter. A graph of that breadth visits about
    ``breadth / share`` places, against N rows; an inverted file compares with as many rows as
    without a filter, ``C * num_probes / num_lists``.

    Args:
        inner: The FAISS index.
        kind: As in the settings.
        breadth: Places of a graph, or lists, that a search without a filter reads.
        k: Results asked for.
        rows: The filter; what a single query excludes plays no part.
    """
    if rows.allowed_rows is None:
        return False
    share, num_allowed = rows.allowed_share(), len(rows.allowed_rows)
    if kind == "flat":
        return share < _SMALLEST_SHARE_OF_FLAT
    if kind in GRAPH_KINDS:
        return share == 0 or num_allowed <= _ROWS_A_PLACE * max(breadth, k) / share
    return bool(share <= _ROWS_A_LISTED_ROW * breadth / inner.nlist)


def search_parameters(inner: Any, kind: str, breadth: int, fetch: int, rows: RowFilter) -> Any:
    """Make the parameters of a search for a number of candidates, None where there are none.

    Args:
        inner: The FAISS index.
        kind: As for `exact_is_better`, like the next.
        breadth: Of a search without a filter.
        fetch: Candidates.
        rows: The filter; at least one row is allowed.
    """
    share = rows.allowed_share()
    selector = None
    if rows.allowed_rows is not None or rows.hidden is not None:
        selector = _faiss.IDSelectorBitmap(rows.allowed_bits)
    if kind in GRAPH_KINDS:
        places = min(max(breadth, fetch) / share, max(inner.ntotal, fetch))
        return _parameters(_faiss.SearchParametersHNSW, selector, efSearch=int(places))
    if kind in LIST_KINDS:
        probes = min(int(breadth / share), int(inner.nlist))
        return _parameters(_faiss.SearchParametersIVF, selector, nprobe=probes)
    return None if selector is None else _parameters(_faiss.SearchParameters, selector)


def _parameters(kind: Any, selector: Any, **breadth: int) -> Any:
    return kind(sel=selector, **breadth) if selector is not None else _plain(kind, **breadth)


@lru_cache(maxsize=64)
def _plain(kind: Any, **breadth: int) -> Any:
    """Make parameters once: that takes as long as a tenth of a small search."""
    return kind(**breadth)
