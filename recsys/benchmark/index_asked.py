"""Queries of the index benchmark with their exact results, asked of any index.

Dimensions: Q queries, D embedding width, B of them at once, k results asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged
from recsys.metrics import overlap_at_k

Search = Callable[[NDArray[np.float32]], NDArray[np.int64]]
"""From queries [B, D] to rows [B, k]; -1 where there is none."""


@dataclass(frozen=True)
class AskedQueries:
    """Queries, and the exact best of each.

    Attributes:
        queries: [Q, D], float32.
        best: Q lists of k rows.
        k: Results of each query.
        at_once: B.
    """

    queries: NDArray[np.float32]
    best: Ragged
    k: int
    at_once: int

    def recalls(self, search: Search) -> NDArray[np.float64]:
        """Give the index recall of each query: [Q]."""
        rows = self.rows(search)
        owners, places = np.nonzero(rows >= 0)
        found = Ragged.from_pairs(owners, rows[owners, places], len(rows))
        return overlap_at_k(found, self.best, self.k)

    def rows(self, search: Search) -> NDArray[np.int64]:
        """Search block after block: [Q, k]."""
        starts = range(0, len(self.queries), self.at_once)
        return np.concatenate([search(self.queries[i : i + self.at_once]) for i in starts])
