"""Implicit ALS with frequency-scaled regularisation: the one door to irspack.

Dimensions: U users, N candidates, B queries, D factors.
"""

import importlib.util
import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix

from recsys.baselines.interactions import Interactions, history_matrix
from recsys.baselines.ranking import top_of_scores
from recsys.foundations import Progress, Ragged, check_positive


def ials_is_missing() -> str | None:
    """Say what to install where the package that fits it is absent; else None."""
    if importlib.util.find_spec("irspack") is not None:
        return None
    return "it needs irspack: pip install 'recsys-retrieval[baselines]'"


class Ials:
    """Score candidates by the inner product of factors of users and items.

    The factors minimise the sum over what a user had of ``(score - 1)^2``, plus ``w`` times the sum
    over all pairs of ``score^2``, plus ``regularization`` times the squared length of each vector
    times its frequency ``events + w * (N or U)``. A user's factors are solved anew from the history
    that is asked about, so that users who were not there when fitting are ranked like the others.

    Args:
        interactions: Who had what.
        dim: D; at least 1.
        regularization: Above 0.
        unobserved_weight: w; above 0.
        iterations: Of the alternation; at least 1.
        num_threads: At least 1.
        seed: Of the first factors.

    Raises:
        ModuleNotFoundError: irspack is not installed.

    Source:
        "Revisiting the performance of iALS on item recommendation benchmarks", RecSys 2022.
        Differs: each system is solved by 3 (a history's by 5) steps of conjugate gradients, which
        is the package's way.
    """

    def __init__(
        self,
        interactions: Interactions,
        *,
        dim: int,
        regularization: float,
        unobserved_weight: float,
        iterations: int,
        num_threads: int,
        seed: int = 0,
    ) -> None:
        for name, value in (("dim", dim), ("iterations", iterations), ("num_threads", num_threads)):
            check_positive(name, value)
        check_positive("regularization", regularization)
        check_positive("unobserved_weight", unobserved_weight)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of how the package defines its settings
            from irspack.recommenders.ials import IALSRecommender

        self._num_items = interactions.num_items
        self._model = IALSRecommender(
            _as_package_takes_it(interactions.matrix),
            n_components=dim,
            alpha0=unobserved_weight,
            reg=regularization,
            random_seed=seed,
            n_threads=num_threads,
        )
        self._model.start_learning()
        with Progress("iALS", iterations, "iterations") as bar:
            for _ in range(iterations):
                self._model.run_epoch()
                bar.advance(1)
        self._items = np.asarray(self._model.get_item_embedding())  # [N, D]

    def top(
        self,
        histories: Ragged,
        k: int,
        exclude: Ragged,
        allowed: NDArray[np.int64] | None = None,
    ) -> Ragged:
        """Rank all candidates; none for an empty history. See `top_of_scores`."""
        return top_of_scores(
            self.scores, histories, k=k, exclude=exclude, allowed=allowed, num_items=self._num_items
        )

    def scores(self, histories: Ragged) -> NDArray[np.float32]:
        """Score all candidates for B histories: [B, N]; -inf where a history is empty."""
        matrix = _as_package_takes_it(history_matrix(histories, self._num_items))
        scores = np.asarray(self._model.compute_user_embedding(matrix) @ self._items.T)  # [B, N]
        scores[histories.lengths == 0] = -np.inf
        return scores


def _as_package_takes_it(matrix: csr_array) -> csr_matrix:
    return csr_matrix(matrix.astype(np.float32))
