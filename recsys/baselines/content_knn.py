"""Items that are like those of the history, by their features alone.

Dimensions: B queries, N candidates, F tokens of all features.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from recsys.baselines.interactions import decayed_history_matrix
from recsys.baselines.ranking import top_of_scores
from recsys.foundations import Ragged


class ContentKnn:
    """Score a candidate by the sum of its cosines to the events of the history.

    It learns nothing from interactions, so that an item without any is ranked like the others.

    Args:
        vectors: [N, F], rows of length 1 or 0; see `item_vectors`.
        decay: The cosine to an event counts ``decay ** age``, the age of the newest event being 0;
            above 0, at most 1.
    """

    def __init__(self, vectors: csr_array, *, decay: float) -> None:
        self._vectors, self._decay = vectors, decay

    def top(
        self,
        histories: Ragged,
        k: int,
        exclude: Ragged,
        allowed: NDArray[np.int64] | None = None,
    ) -> Ragged:
        """Rank the candidates that share something with an item of the history.

        See `top_of_scores`; lists are shorter than k where fewer candidates share anything.
        """
        return top_of_scores(
            self._score,
            histories,
            k=k,
            exclude=exclude,
            allowed=allowed,
            num_items=self._vectors.shape[0],
        )

    def _score(self, histories: Ragged) -> NDArray[np.float64]:
        events = decayed_history_matrix(histories, self._vectors.shape[0], self._decay)
        profiles = events @ self._vectors  # [B, F]
        scores: NDArray[np.float64] = (profiles @ self._vectors.T).toarray()  # [B, N]
        scores[scores <= 0] = -np.inf
        return scores
