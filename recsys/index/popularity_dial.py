"""Exact search by a score from which popularity is taken, or to which it is added.

Dimensions: B queries, M interests of a query, C candidates, D embedding width.
"""

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, Ragged, check_positive, check_shape
from recsys.index.exact import ExactIndex
from recsys.index.hits import Hits
from recsys.index.stored_index import Vectors

LARGEST_ALPHA = 10.0


class PopularityDial:
    """Exact search by ``score - alpha * temperature * log(popularity)``.

    The model's softmax divides scores by the temperature, so that alpha is in units of its
    logits: with alpha = 1 a score that stands for log P(candidate | query) becomes one for
    log(P(candidate | query) / P(candidate)), the pointwise mutual information. Above 0 less
    popular candidates rise, below 0 more popular ones.

    The log popularity is one more dimension of the candidates' vectors, in which every query has
    the value ``-alpha * temperature``; filters, order and independence of batching are those of
    exact search. The first search copies the vectors, to [C, D + 1]; the copy stays.

    Args:
        vectors: [C, D], float32, finite; as for `ExactIndex`.
        log_popularity: [C], in nats, finite.
        temperature: The model's; above 0.

    Raises:
        ShapeError: There is not one log popularity a vector.
        ArgumentError: The temperature is not above 0.

    Source:
        "Long-tail learning via logit adjustment", ICLR 2021, the post-hoc form. Differs: the
        classes are the candidates, and alpha, their tau, may be negative.
    """

    def __init__(
        self,
        vectors: Vectors,
        log_popularity: NDArray[np.float64],
        temperature: float,
    ) -> None:
        check_shape("log_popularity", log_popularity, len(vectors))
        check_positive("temperature", temperature)
        self._vectors, self._log_popularity = vectors, log_popularity
        self._temperature = temperature
        self._index: ExactIndex | None = None
        self._building = threading.Lock()  # a server searches in threads

    def search(
        self,
        query_vectors: NDArray[np.float32],
        k: int,
        *,
        alpha: float,
        exclude: Ragged | None = None,
        allowed: NDArray[Any] | Ragged | None = None,
    ) -> Hits:
        """Find the k candidates of largest score after the dial.

        Args:
            query_vectors: [B, D] or [B, M, D], float32, finite.
            k: At least 1.
            alpha: Share of the log popularity that is taken away; from -10 to 10.
            exclude: As for `Index.search`.
            allowed: As for `Index.search`.

        Returns:
            The hits, with the scores after the dial.

        Raises:
            ArgumentError: ``alpha`` is out of range; or as for `Index.search`.
            ShapeError: As for `Index.search`.
        """
        check_alpha("alpha", alpha)
        weight = np.full((*query_vectors.shape[:-1], 1), -alpha * self._temperature, np.float32)
        wider = np.concatenate([query_vectors, weight], axis=-1)
        return self._widened().search(wider, k, exclude=exclude, allowed=allowed)

    def _widened(self) -> ExactIndex:
        with self._building:
            if self._index is None:
                num_candidates, dim = self._vectors.shape
                vectors = np.empty((num_candidates, dim + 1), np.float32)
                vectors[:, :-1] = self._vectors
                vectors[:, -1] = self._log_popularity
                self._index = ExactIndex(vectors)
            return self._index


def check_alpha(name: str, alpha: float) -> None:
    """Check that a dial stands in its range.

    Raises:
        ArgumentError: It does not, or is NaN.
    """
    if not -LARGEST_ALPHA <= alpha <= LARGEST_ALPHA:
        raise ArgumentError(
            f"`{name}` must lie between {-LARGEST_ALPHA:g} and {LARGEST_ALPHA:g}, got {alpha}."
        )
