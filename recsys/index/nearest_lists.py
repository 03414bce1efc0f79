"""The lists of an inverted file that a search reads: those of the centroids nearest to a query.

Dimensions: B queries, L lists, P of them read (probes), D embedding width.
"""

from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from recsys.foundations import one_blas_thread
from recsys.index.rounding import RoundingBound, norms_of
from recsys.index.scoring import inner_products, rows_of_keys, scores_of_keys, sort_keys

_PRODUCTS_AT_ONCE = 1 << 18  # 1 MiB
_QUERIES_IN_THREADS = 3  # FAISS's number
_IN_A_GROUP = 8  # lists
_LARGEST = float(np.finfo(np.float32).max)
_LAST = np.iinfo(np.int64).max  # behind the key of any score


def has_flat_centroids(inner: Any) -> bool:
    """Tell whether all centroids of an inverted file are compared with a query."""
    return isinstance(faiss.downcast_index(inner.quantizer), faiss.IndexFlat)


class NearestLists:
    """Chooses lists for FAISS, faster than it does, and by scores that depend on the query alone.

    One product in float32 gives all scores, within the rounding bound; those that may stand among
    the P largest are computed anew as every score is. FAISS alone rounds them in an order that
    depends on how many queries are searched at once.

    Args:
        inner: The inverted file, with a flat list of centroids; they are copied.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        inner.parallel_mode = _QUERIES_IN_THREADS  # else lists that are given are read in one
        self._centroids: NDArray[np.float32] = inner.quantizer.reconstruct_n(0, inner.nlist)
        self._largest_norm = float(norms_of(self._centroids).max(initial=0.0))
        unit = np.zeros((1, 1, inner.d), np.float32)
        none, one = unit.copy(), unit
        one[..., 0] = 1
        self._bound_of_none = self._bound(none)
        self._bound_of_one = self._bound(one)  # of a query of length 1

    def find(
        self, queries: NDArray[np.float32], num_probes: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Find the P lists of the largest inner products with their centroids.

        Args:
            queries: [B, D], float32.
            num_probes: P, at most L.

        Returns:
            Lists and scores, [B, P] each, by score (falling), then list (rising).

        Raises:
            ArgumentError: The inner products could leave the range of float32.
        """
        keys = np.empty((len(queries), num_probes), np.int64)
        step = max(_PRODUCTS_AT_ONCE // len(self._centroids), 1)
        with one_blas_thread():
            for start in range(0, len(queries), step):
                part = slice(start, start + step)
                keys[part] = self._find_some(queries[part], num_probes)
        return rows_of_keys(keys), scores_of_keys(keys)

    def search(
        self,
        queries: NDArray[np.float32],
        fetch: int,
        nearest: tuple[NDArray[np.int64], NDArray[np.float32]],
        parameters: Any,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Search lists of each query, as FAISS's own ``search`` does.

        Args:
            queries: [B, D], float32, C-contiguous.
            fetch: Candidates.
            nearest: What `find` gave.
            parameters: Of FAISS, with P probes.

        Returns:
            Scores and rows, [B, fetch] each, by score (falling); row -1 where there is none.
        """
        shape = (len(queries), fetch)
        found = np.empty(shape, np.float32), np.empty(shape, np.int64)
        pointers = [faiss.swig_ptr(part) for part in (queries, *nearest, *found)]
        # FAISS's wrapper in Python takes no parameters here.
        self._inner.search_preassigned_c(
            len(queries), pointers[0], fetch, *pointers[1:], False, parameters
        )
        return found

    def _find_some(self, queries: NDArray[np.float32], num_probes: int) -> NDArray[np.int64]:
        """Give the sort keys [B, P] of the lists, rising."""
        asked = queries.astype(np.float64)[:, None]  # [B, 1, D]
        norms = np.sqrt(inner_products(asked, asked))  # [B, 1]
        if norms.max() * self._largest_norm > _LARGEST:
            RoundingBound(queries[:, None], self._largest_norm)  # refuses them in its words
        products = queries @ self._centroids.T  # [B, L]
        floors = _floors(products, num_probes)
        # Two bounds, and half a one for the rounding of the difference.
        slack = 2.5 * (self._bound_of_one * norms + self._bound_of_none)
        lowest = (floors[:, None] - slack).astype(np.float32)
        reaching = products >= lowest
        found = np.flatnonzero(reaching)
        if len(found) == len(queries) * num_probes:  # P of each
            lists = found.reshape(-1, num_probes)
            lists -= (np.arange(len(queries)) * products.shape[1])[:, None]
            keys = self._keys(asked, lists)
        else:
            counts = np.bincount(found // products.shape[1], minlength=len(queries))
            some = np.arange(counts.max()) < counts[:, None]  # [B, P or more]
            lists = np.zeros(some.shape, np.int64)
            lists[some] = found % products.shape[1]
            keys = self._keys(asked, lists)
            keys[~some] = _LAST
        keys.sort(axis=1)
        return keys[:, :num_probes]

    def _keys(self, asked: NDArray[np.float64], lists: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the sort keys of lists [B, n] by their exact scores."""
        scores = inner_products(asked, self._centroids[lists].astype(np.float64))
        return sort_keys(scores.astype(np.float32), lists)

    def _bound(self, query: NDArray[np.float32]) -> float:
        return float(RoundingBound(query, self._largest_norm).of_norm(self._largest_norm)[0])


def _floors(products: NDArray[np.float32], num_probes: int) -> NDArray[np.float32]:
    """Give for each query a product that P lists reach at least, and few more: [B].

    The P-th largest product, or, where groups of lists are many more than P, the P-th largest of
    the groups' largest: each of P groups has a list that reaches it.

    Args:
        products: [B, L].
        num_probes: P, at most L.
    """
    num_groups = products.shape[1] // _IN_A_GROUP
    if num_groups >= _IN_A_GROUP * num_probes:
        grouped = products[:, : num_groups * _IN_A_GROUP]
        products = grouped.reshape(-1, _IN_A_GROUP, num_groups).max(axis=1)
    place = products.shape[1] - num_probes
    floors: NDArray[np.float32] = np.partition(products, place, axis=1)[:, place]
    return floors
