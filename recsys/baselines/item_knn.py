"""Items that the same users had, by cosine.

Dimensions: U users, N candidates, B queries.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from recsys.baselines.interactions import Interactions, history_matrix
from recsys.baselines.ranking import top_of_pairs
from recsys.foundations import Progress, Ragged, check_positive

_PAIRS_AT_ONCE = 1 << 24  # of items; bounds the memory of a block


class ItemKnn:
    """Score a candidate by its similarity to the items of the history, summed.

    The similarity of items i and j is ``users of both / (sqrt(users of i * users of j) +
    shrinkage)``; of each item the most similar ones count, equal ones by row.

    Args:
        interactions: Who had what.
        num_neighbours: Similar items that are kept of each item; at least 1.
        shrinkage: Draws the similarity of rare items towards 0; at least 0.

    Source:
        "Item-based top-N recommendation algorithms", ACM TOIS 2004. Differs: the shrinkage; the
        rows of the item matrix are not normalised.
    """

    def __init__(
        self, interactions: Interactions, *, num_neighbours: int, shrinkage: float
    ) -> None:
        check_positive("num_neighbours", num_neighbours)
        self._num_items = interactions.num_items
        by_user = interactions.matrix
        by_item = by_user.T.tocsr()
        counts = by_user.sum(axis=0)
        size = max(1, _PAIRS_AT_ONCE // self._num_items)
        parts = []
        with Progress("item neighbours", self._num_items, "items") as bar:
            for start in range(0, self._num_items, size):
                both = (by_item[start : start + size] @ by_user).tocoo()  # [block, N]
                rows, columns = both.row.astype(np.int64) + start, both.col.astype(np.int64)
                near = both.data / (np.sqrt(counts[rows] * counts[columns]) + shrinkage)
                parts.append(_most_similar(rows, columns, near, num_neighbours))
                bar.advance(min(size, self._num_items - start))
        rows, columns, near = (np.concatenate(some) for some in zip(*parts, strict=True))
        shape = (self._num_items, self._num_items)
        self.similarities = csr_array((near, (rows, columns)), shape=shape)

    def top(
        self,
        histories: Ragged,
        k: int,
        exclude: Ragged,
        allowed: NDArray[np.int64] | None = None,
    ) -> Ragged:
        """Rank the candidates that are similar to an item of the history; see `top_of_pairs`.

        Lists are shorter than k where fewer candidates are similar to anything.
        """
        scores = (history_matrix(histories, self._num_items) @ self.similarities).tocoo()
        queries, rows = scores.row.astype(np.int64), scores.col.astype(np.int64)
        return top_of_pairs(queries, rows, scores.data, k=k, exclude=exclude, allowed=allowed)


_Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def _most_similar(
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    similarities: NDArray[np.float64],
    num_neighbours: int,
) -> _Pairs:
    """Keep the most similar other items of each row."""
    other = rows != columns
    rows, columns, similarities = rows[other], columns[other], similarities[other]
    order = np.lexsort((columns, -similarities, rows))
    owners = rows[order]
    places = np.arange(len(order)) - np.searchsorted(owners, owners)
    kept = order[places < num_neighbours]
    return rows[kept], columns[kept], similarities[kept]
