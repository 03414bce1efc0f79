"""How much the full softmax's own gradient varies from one training batch to the next."""

import math

from torch import Tensor


class BatchSpread:
    """Collects the gradients of batches; an estimator's error below it matters little."""

    def __init__(self) -> None:
        self._total: Tensor | None = None
        self._squares, self._num_batches = 0.0, 0

    def add(self, gradient: Tensor) -> None:
        """Take in a batch's gradient, of one shape for all batches."""
        self._total = gradient.clone() if self._total is None else self._total + gradient
        self._squares += float(gradient.square().sum())
        self._num_batches += 1

    def relative(self) -> float | None:
        """Give the standard deviation over batches / the root mean square norm.

        Near 1 nearly all of a batch's gradient is its own, and not the training part's. None with
        fewer than two batches, or without any gradient.
        """
        number = self._num_batches
        if self._total is None or number < 2 or self._squares == 0:
            return None
        mean_square = self._squares / number
        variance = mean_square - float(self._total.square().sum()) / number**2
        return math.sqrt(max(variance, 0) * number / (number - 1) / mean_square)
