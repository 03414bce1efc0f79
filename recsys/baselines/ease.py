"""EASE: the item-to-item linear model in closed form, for small catalogues.

Dimensions: N candidates, B queries.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from recsys.baselines.interactions import Interactions, history_matrix
from recsys.baselines.ranking import top_of_scores
from recsys.foundations import Ragged, check_positive


class Ease:
    """Score candidates by ``history @ weights``, the ridge regression of each item on the others.

    With G the users that each pair of items has in common and ``P = (G + regularization * I)^-1``
    the weights are ``-P / diag(P)``, column by column, and 0 on the diagonal. The inversion takes
    O(N^3) steps; while it runs three matrices [N, N] of float64 are held, afterwards two.

    Args:
        interactions: Who had what.
        regularization: Lambda; above 0.

    Source:
        "Embarrassingly shallow autoencoders for sparse data", WWW 2019. Differs: nothing.
    """

    def __init__(self, interactions: Interactions, *, regularization: float) -> None:
        check_positive("regularization", regularization)
        lower = torch.from_numpy(interactions.item_gram.copy())
        lower.diagonal().add_(regularization)
        torch.linalg.cholesky(lower, out=lower)
        inverse = torch.cholesky_inverse(lower).numpy()
        self.weights = inverse
        self.weights /= -np.diag(inverse).copy()
        np.fill_diagonal(self.weights, 0)

    def top(
        self,
        histories: Ragged,
        k: int,
        exclude: Ragged,
        allowed: NDArray[np.int64] | None = None,
    ) -> Ragged:
        """Rank all candidates, as `top_of_scores` does; an empty history scores nothing."""
        return top_of_scores(
            self._score,
            histories,
            k=k,
            exclude=exclude,
            allowed=allowed,
            num_items=len(self.weights),
        )

    def _score(self, histories: Ragged) -> NDArray[np.float64]:
        scores = np.asarray(history_matrix(histories, len(self.weights)) @ self.weights)  # [B, N]
        scores[histories.lengths == 0] = -np.inf
        return scores
