"""How far float32 and float64 inner products may stand from the score of a pair.

Dimensions: B queries, M interests of a query, n candidates of a block, D embedding width, P pairs.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import ArgumentError

_UNIT = 2.0**-24  # of rounding in float32
_DOUBLE_UNIT = 2.0**-53
_AT_ONCE = 8192
_LARGEST = float(np.finfo(np.float32).max)


def norms_of(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute the lengths of vectors [C, D], rounded up: [C], float32; not finite if a value is."""
    norms = np.empty(len(vectors), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(vectors), _AT_ONCE):
            part = np.square(vectors[start : start + _AT_ONCE], dtype=np.float64)
            norms[start : start + _AT_ONCE] = np.sqrt(part.sum(axis=1))
        return np.asarray(np.nextafter(norms, np.float32(np.inf)))


class RoundingBound:
    """Bounds ``|inner product - score|``, where `score_pairs` gives the score.

    Any order of D additions errs by at most D u / (1 - D u) of |q| |v|, u the unit of rounding;
    eight units more cover the norms' own error, the rounding of the score, and that of a product
    less or plus its bound. The largest of M errs by no more than the one that errs most.

    Args:
        query_vectors: [B, M, D].
        largest_norm: Of the candidates' vectors.

    Raises:
        ArgumentError: The inner products could leave the range of float32.
    """

    def __init__(self, query_vectors: NDArray[np.float32], largest_norm: float) -> None:
        squares = np.square(query_vectors, dtype=np.float64).sum(axis=2)  # [B, M]
        norms = np.sqrt(squares.max(axis=1))
        if len(norms) and norms.max() * largest_norm > _LARGEST:
            raise ArgumentError("`query_vectors` are so long that scores would leave float32.")
        dim = query_vectors.shape[2]
        units = dim / max(1 - dim * _UNIT, _UNIT) + 8
        self._shares = units * _UNIT * norms  # [B], of a candidate's norm
        self._underflow = dim * float(np.finfo(np.float32).tiny)
        self._double_underflow = dim * float(np.finfo(np.float64).tiny)

    def of_pairs(
        self, queries: NDArray[np.integer], norms: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Bound the error of P float32 products with candidates of those norms [P]: [P]."""
        bounds = self._shares[queries] * norms + self._underflow
        return np.asarray(np.nextafter(bounds.astype(np.float32), np.float32(np.inf)))

    def of_norm(self, norm: float) -> NDArray[np.float64]:
        """Bound the error of float32 products with candidates up to that norm: [B]."""
        return np.asarray(self._shares * norm + self._underflow)

    def of_norm_in_double(self, norm: float) -> NDArray[np.float64]:
        """Bound the distance of float64 products from the sums behind the scores: [B]."""
        return np.asarray(self._shares * (_DOUBLE_UNIT / _UNIT) * norm + self._double_underflow)


def check_score_range(query_vectors: NDArray[np.float32], largest_norm: float) -> None:
    """Check what `RoundingBound` checks, by one product where the vectors are of usual lengths.

    No query is longer than the root of the sum of all squares; half the range leaves room for its
    rounding.

    Args:
        query_vectors: [B, M, D].
        largest_norm: Of the candidates' vectors.

    Raises:
        ArgumentError: The inner products could leave the range of float32.
    """
    numbers = query_vectors.ravel()
    with np.errstate(over="ignore"):
        squares = float(np.dot(numbers, numbers))
    if not math.sqrt(squares) * largest_norm <= _LARGEST / 2:
        RoundingBound(query_vectors, largest_norm)
