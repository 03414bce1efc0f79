"""Changes folded into a new main index, and the measure that says when to train it anew.

Dimensions: Q queries, C candidates, D embedding width, k results asked for.
"""

from dataclasses import asdict, dataclass
from typing import Any, Self

import faiss
import numpy as np
from numpy.typing import NDArray

from recsys.index.changed_index import ChangedIndex
from recsys.index.faiss_index import FaissIndex
from recsys.index.settings import LIST_KINDS
from recsys.index.stored_index import StoredIndex
from recsys.metrics import bootstrap_interval, overlap_at_k


def fold(index: ChangedIndex, *, retrain: bool) -> FaissIndex:
    """Build an index over all C vectors, changes in place, with the settings of the main index.

    Args:
        index: The index with its changes; is left as it is.
        retrain: Whether what the vectors train (centroids, codes) is trained anew; otherwise it is
            that of the main index.

    Returns:
        The index. Withdrawn rows are in it like all others: they stay withdrawn by the changes
        that are kept beside it.
    """
    vectors = np.asarray(index.vectors)
    if retrain or index.kind not in LIST_KINDS:
        return FaissIndex.build(vectors, index.settings)
    inner: Any = faiss.clone_index(index.main.inner)
    inner.reset()
    inner.add(vectors)
    return FaissIndex(vectors, inner, index.settings)


@dataclass(frozen=True)
class MeasuredRecall:
    """Index recall over queries.

    Attributes:
        mean: Of index_recall_at_k.
        low: Lower end of its 95 % bootstrap interval.
        high: Upper end.
        k: Length of the lists.
        num_queries: Q.
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
        """Read what `to_json` gave."""
        return cls(**value)


def measure_recall(
    index: StoredIndex, queries: NDArray[np.float32], k: int, seed: int
) -> MeasuredRecall:
    """Compare an index with exact search over the same candidates.

    Args:
        index: With or without changes.
        queries: [Q, D] or [Q, M, D], float32.
        k: Length of the lists.
        seed: Of the interval's resamples.
    """
    found, truth = index.search(queries, k).lists, index.exact.search(queries, k).lists
    values = overlap_at_k(found, truth, k)
    interval = bootstrap_interval(values, seed)
    return MeasuredRecall(
        float(np.nanmean(values)), float(interval.low), float(interval.high), k, len(queries)
    )
