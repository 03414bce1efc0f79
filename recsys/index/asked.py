"""Queries that an index is tuned on, with what each excludes and the exact result.

Dimensions: Q queries, D embedding width, M interests of a query, k results asked for.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged
from recsys.index.exact import ExactIndex
from recsys.index.hits import Index
from recsys.metrics import overlap_at_k


@dataclass(frozen=True)
class TuningQueries:
    """What lookups ask.

    Attributes:
        vectors: [Q, D] or [Q, M, D], float32.
        exclude: Q lists of rows that a query must not get; None: nothing is left out.
    """

    vectors: NDArray[np.float32]
    exclude: Ragged | None = None


@dataclass(frozen=True)
class Asked:
    """Queries with their exact results.

    Attributes:
        queries: [Q, D] or [Q, M, D], float32.
        exclude: Q lists of rows that a query must not get, as a lookup leaves out what its user
            has seen; None: nothing is left out.
        truth: Q lists, the best k rows of each.
        k: Results asked for.
    """

    queries: NDArray[np.float32]
    exclude: Ragged | None
    truth: Ragged
    k: int

    @classmethod
    def of(
        cls, queries: NDArray[np.float32], exclude: Ragged | None, exact: ExactIndex, k: int
    ) -> Self:
        """Search exactly for what the queries should find."""
        queries = np.ascontiguousarray(queries)
        return cls(queries, exclude, exact.search(queries, k, exclude=exclude).lists, k)

    def recalls(self, index: Index) -> NDArray[np.float64]:
        """Give the index recall of each query: [Q]."""
        found = index.search(self.queries, self.k, exclude=self.exclude)
        return overlap_at_k(found.lists, self.truth, self.k)

    def block(self, start: int, size: int) -> tuple[NDArray[np.float32], Ragged | None]:
        """Give the queries from a place on, and what they exclude."""
        stop = start + size
        exclude = None if self.exclude is None else self.exclude.slice(start, stop)
        return np.ascontiguousarray(self.queries[start:stop]), exclude
