"""Frequencies in the training data, raised to a power, as a distribution."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from recsys.foundations import ArgumentError, check_shape


def popularity_probabilities(counts: NDArray[Any] | Tensor, alpha: float) -> NDArray[np.float64]:
    """Compute the draw probability ``count^alpha / sum of count^alpha``.

    Args:
        counts: [C], training events of each candidate; not negative, not all 0.
        alpha: Any finite number. 1 follows the data, 0.75 is word2vec's choice, 0 draws every
            candidate alike (also those without events), a negative one prefers the rare. With any
            alpha but 0, a candidate without events has probability 0.

    Returns:
        [C], float64, sum 1.

    Raises:
        ArgumentError: A count is negative or not finite, or all are 0; `alpha` is not finite.
    """
    counts = np.asarray(counts, dtype=np.float64)
    check_shape("counts", counts, None)
    if not np.isfinite(alpha):
        raise ArgumentError(f"`alpha` must be finite, got {alpha}.")
    if not np.isfinite(counts).all() or (counts < 0).any():
        raise ArgumentError("`counts` must be finite and not negative.")
    if not (counts > 0).any():
        raise ArgumentError("`counts` must hold one value above 0, got none.")
    if alpha == 0:
        return np.full(len(counts), 1 / len(counts))
    weights = np.full(len(counts), -np.inf)  # logarithms at first, here and below in place
    seen = counts > 0
    most = counts.max() if alpha > 0 else counts[seen].min()  # the likeliest: no alpha overflows
    np.log(counts, out=weights, where=seen)
    np.subtract(weights, np.log(most), out=weights, where=seen)
    with np.errstate(over="ignore"):  # to -inf
        np.multiply(weights, alpha, out=weights, where=seen)
    np.exp(weights, out=weights)
    weights /= weights.sum()
    return weights
