"""A search that never gives certain rows."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged
from recsys.index import Hits, Search


def without_rows(search: Search, withdrawn: NDArray[np.int64], num_candidates: int) -> Search:
    """Make of a search one that gives none of the withdrawn rows, whatever is allowed.

    Args:
        search: As `Index.search`.
        withdrawn: Distinct rows; without any the search is left as it is.
        num_candidates: Rows that the search ranks.
    """
    if not len(withdrawn):
        return search
    live = np.ones(num_candidates, np.bool_)
    live[withdrawn] = False
    return partial(_search, search, live)


def _search(
    search: Search,
    live: NDArray[np.bool_],
    query_vectors: NDArray[np.float32],
    k: int,
    *,
    exclude: Ragged | None = None,
    allowed: NDArray[Any] | Ragged | None = None,
) -> Hits:
    if allowed is None:
        kept: NDArray[Any] | Ragged = np.flatnonzero(live)
    elif isinstance(allowed, Ragged):
        inside = live[allowed.rows]
        owners = allowed.owners()[inside]
        kept = Ragged.from_pairs(owners, allowed.rows[inside], len(allowed))
    else:
        kept = allowed[live[allowed]]
    return search(query_vectors, k, exclude=exclude, allowed=kept)
