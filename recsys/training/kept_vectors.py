"""Vectors of queries that are asked for again and again.

Dimensions: U queries, B queries of a block, M interests of a query, E output width.
"""

import numpy as np
from numpy.typing import NDArray

from recsys.evaluation import Embed, EvaluationQueries


class KeptVectors:
    """Embeds queries, and keeps the vectors of some of them, which are embedded but once.

    Args:
        embed: Gives the vectors of a block of queries, the same in any company.
        queries: U queries whose vectors are kept, at least one, in the order of their user rows.
    """

    def __init__(self, embed: Embed, queries: EvaluationQueries) -> None:
        self._embed, self._user_rows = embed, queries.user_rows
        self._vectors = embed(queries)  # [U, E] or [U, M, E]

    def __call__(self, block: EvaluationQueries) -> NDArray[np.float32]:
        """Give the vectors of a block: [B, E] or [B, M, E]."""
        places = np.searchsorted(self._user_rows, block.user_rows).clip(max=len(self._vectors) - 1)
        others = np.flatnonzero(self._user_rows[places] != block.user_rows)
        vectors: NDArray[np.float32] = self._vectors[places]
        if len(others):
            vectors[others] = self._embed(block.take(others))
        return vectors
