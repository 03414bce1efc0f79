"""The index recall of an index, and whether it fell since its quantiser was trained.

Dimensions: Q queries, M interests of a query, D embedding width, k results asked for.
"""

from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, FormatError
from recsys.index.stored_index import StoredIndex
from recsys.metrics import bootstrap_interval, overlap_at_k


@dataclass(frozen=True, kw_only=True)
class MeasuredRecall:
    """Index recall over queries.

    Attributes:
        mean: Of index_recall_at_k; 1 where no query has a candidate, since nothing is lost.
        low: Lower end of its 95 % bootstrap interval.
        high: Upper end.
        k: Length of the lists.
        num_queries: Q, without those that have no candidate.
    """

    mean: float
    low: float
    high: float
    k: int
    num_queries: int

    def to_json(self) -> dict[str, Any]:
        """Give plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Read what `to_json` gave.

        Raises:
            FormatError: It is something else.
        """
        names = {field.name for field in fields(cls)}
        if not isinstance(value, dict) or set(value) != names:
            raise FormatError("A measured index recall is damaged: not the keys it should have.")
        for name, number in value.items():
            whole = name in ("k", "num_queries")
            right = isinstance(number, int if whole else (int, float)) and number >= 0
            if isinstance(number, bool) or not right:
                raise FormatError(f"A measured index recall is damaged: {name} is {number!r}.")
        return cls(**value)


def measure_recall(
    index: StoredIndex, queries: NDArray[np.float32], k: int, seed: int
) -> MeasuredRecall:
    """Compare an index with exact search over the same candidates.

    Args:
        index: With or without changes.
        queries: [Q, D] or [Q, M, D], float32; of users, not items.
        k: Length of the lists.
        seed: Of the interval's resamples.

    Raises:
        ArgumentError: There is no query, or as for `Index.search`.
    """
    if not len(queries):
        raise ArgumentError("`queries` must hold at least one query.")
    found, truth = index.search(queries, k).lists, index.exact.search(queries, k).lists
    values = overlap_at_k(found, truth, k)
    values = values[~np.isnan(values)]
    if not len(values):
        return MeasuredRecall(mean=1.0, low=1.0, high=1.0, k=k, num_queries=0)
    ends = bootstrap_interval(values, seed)
    return MeasuredRecall(
        mean=float(values.mean()),
        low=float(ends.low),
        high=float(ends.high),
        k=k,
        num_queries=len(values),
    )


def needs_retraining(trained: MeasuredRecall, now: MeasuredRecall, threshold: float) -> bool:
    """Tell whether the recall has drifted from that at the last training.

    It has where the mean fell by more than the threshold, and by more than chance: the upper end of
    the interval now lies below the mean of then.

    Args:
        trained: Measured when the quantiser was trained.
        now: With the centroids of then, after changes.
        threshold: Of the loss; 0 to 1.

    Raises:
        ArgumentError: The two were measured at different k, or the threshold is out of range.
    """
    if trained.k != now.k:
        raise ArgumentError(f"`now` must be measured at k = {trained.k}, got {now.k}.")
    if not 0 <= threshold <= 1:
        raise ArgumentError(f"`threshold` must be from 0 to 1, got {threshold}.")
    return trained.mean - now.mean > threshold and now.high < trained.mean
