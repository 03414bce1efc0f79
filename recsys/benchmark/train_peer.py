"""iALS of the package implicit, the peer of whole trainings: the one door to it.

Dimensions: U users, N items, B queries.
"""

import importlib.util
from dataclasses import dataclass
from typing import Any

import numpy as np
import threadpoolctl
from scipy.sparse import csr_matrix

from recsys.data import Events
from recsys.foundations import Ragged


def peer_is_missing() -> str | None:
    """Say what to install where the package is absent; else None."""
    if importlib.util.find_spec("implicit") is not None:
        return None
    return "it needs implicit: pip install 'recsys-retrieval[peers]'"


@dataclass(frozen=True, kw_only=True)
class PeerSettings:
    """Settings of implicit's AlternatingLeastSquares.

    Attributes:
        factors: Width of a vector.
        regularization: Of its length.
        alpha: Weight of what a user had, where all else weighs 1.
        iterations: Turns of users and items.
        threads: At least 1.
    """

    factors: int
    regularization: float
    alpha: float
    iterations: int
    threads: int


class PeerIals:
    """Fits, and ranks for users by what they had, those among them who were not there at the fit.

    Args:
        events: The training part.
        num_items: N.
        settings: Of the fit.
        seed: Of the first factors.

    Raises:
        ModuleNotFoundError: implicit is not installed.
    """

    def __init__(self, events: Events, num_items: int, settings: PeerSettings, seed: int) -> None:
        from implicit.als import AlternatingLeastSquares

        self._make, self._settings, self._seed = AlternatingLeastSquares, settings, seed
        owners = np.unique(events.users, return_inverse=True)[1]
        shape = (int(owners.max(initial=-1)) + 1, num_items)
        ones = np.ones(len(events), np.float32)
        self._matrix = csr_matrix((ones, (owners, np.asarray(events.items))), shape=shape)
        self._model: Any = None

    def fit(self) -> None:
        """Fit from the first factors."""
        with threadpoolctl.threadpool_limits(1, "blas"):  # it has threads of its own
            self._model = self._make(
                factors=self._settings.factors,
                regularization=self._settings.regularization,
                alpha=self._settings.alpha,
                iterations=self._settings.iterations,
                num_threads=self._settings.threads,
                random_state=self._seed,
            )
            self._model.fit(self._matrix, show_progress=False)

    def top(self, histories: Ragged, k: int) -> Ragged:
        """Give the k best items of each of B users that are not in the history, best first."""
        owners = (histories.owners(), histories.rows)
        shape = (len(histories), self._matrix.shape[1])
        matrix = csr_matrix((np.ones(len(histories.rows), np.float32), owners), shape=shape)
        with threadpoolctl.threadpool_limits(1, "blas"):
            found, scores = self._model.recommend(
                np.arange(len(histories)),
                matrix,
                N=k,
                filter_already_liked_items=True,
                recalculate_user=True,
            )  # [B, k]; what is filtered out stands last, with the least score that there is
        kept = (found >= 0) & (scores > np.finfo(np.float32).min)
        return Ragged.from_pairs(np.nonzero(kept)[0], found[kept].astype(np.int64), len(found))
