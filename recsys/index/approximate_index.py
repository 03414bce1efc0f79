"""An index over vectors that are kept beside it, which score and order what it finds.

Dimensions: C candidates, D embedding width.
"""

import copy
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged
from recsys.index.exact import ExactIndex
from recsys.index.hits import Hits
from recsys.index.row_filter import RowFilter
from recsys.index.scoring import check_search
from recsys.index.settings import IndexSettings


class ApproximateIndex(ABC):
    """What indexes of every library share: the vectors, exact search over them, and the arguments.

    Args:
        exact: Exact search over the vectors.
        settings: Those the index was built with.
    """

    def __init__(self, exact: ExactIndex, settings: IndexSettings) -> None:
        self._exact, self.settings = exact, settings

    def with_dial(self, **dial: int) -> Self:
        """Give the same index, searched more or less broadly; nothing is copied.

        Args:
            dial: `ef_search`, `num_probes`, `overfetch`, as in the settings.
        """
        turned = copy.copy(self)
        turned.settings = replace(self.settings, **dial)  # type: ignore[arg-type]
        return turned

    @property
    def num_candidates(self) -> int:
        """Give C."""
        return self._exact.num_candidates

    @property
    def dim(self) -> int:
        """Give D."""
        return self._exact.dim

    @property
    def vectors(self) -> NDArray[np.float32]:
        """Give the vectors [C, D], as they were given."""
        return self._exact.vectors

    @property
    def exact(self) -> ExactIndex:
        """Give the exact index over the same vectors."""
        return self._exact

    def search(
        self,
        query_vectors: NDArray[np.float32],
        k: int,
        *,
        exclude: Ragged | None = None,
        allowed: NDArray[Any] | Ragged | None = None,
    ) -> Hits:
        """Find k candidates of large score; see `Index.search`."""
        queries = check_search(query_vectors, self.dim, k)
        rows = RowFilter(len(queries), self.num_candidates, exclude, allowed)
        return self.search_filtered(queries, k, rows)

    @abstractmethod
    def search_filtered(self, queries: NDArray[np.float32], k: int, rows: RowFilter) -> Hits:
        """Search with arguments that are checked already; the query vectors are [B, M, D]."""
