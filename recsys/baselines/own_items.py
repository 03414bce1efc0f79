"""What a user had before, again: by frequency and recency.

Dimensions: B queries, N candidates.
"""

import numpy as np
from numpy.typing import NDArray

from recsys.baselines.interactions import decayed_history_matrix
from recsys.baselines.ranking import top_of_pairs
from recsys.foundations import Ragged


class OwnItems:
    """Score the items of a history by how often and how lately they stand in it.

    The score of an item is the sum over its events of ``decay ** age``, the age of the newest event
    of the history being 0, of the one before 1, and so on. With a decay of 1 that is the frequency;
    near 0 the latest items come first.

    Args:
        num_items: N.
        decay: Above 0, at most 1.
    """

    def __init__(self, num_items: int, *, decay: float) -> None:
        self._num_items, self._decay = num_items, decay

    def top(
        self,
        histories: Ragged,
        k: int,
        exclude: Ragged,
        allowed: NDArray[np.int64] | None = None,
    ) -> Ragged:
        """Rank the items of each history, perhaps fewer than k; see `top_of_pairs`."""
        scores = decayed_history_matrix(histories, self._num_items, self._decay).tocoo()
        queries, rows = scores.row.astype(np.int64), scores.col.astype(np.int64)
        return top_of_pairs(queries, rows, scores.data, k=k, exclude=exclude, allowed=allowed)
