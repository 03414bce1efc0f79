"""The best k of each query among the candidates seen so far, by scores that may be a little off.

Dimensions: B queries, M interests of a query, C candidates, G of them a group, D embedding width,
k results asked for.
"""

import numpy as np
from numpy.typing import NDArray

from recsys.index.hits import Hits
from recsys.index.pairs import Pairs
from recsys.index.rounding import RoundingBound
from recsys.index.scored_blocks import PADDED_TO, ScoredBlock
from recsys.index.scoring import make_hits, order_pairs, score_pairs

_MEMBERS_AT_ONCE = 1 << 15  # looked at, so that their buffers stay in the cache
_PAIRS_AT_ONCE = 1 << 17  # taken in before the lists are cut
_INFINITY, _MINUS_INFINITY = np.float32(np.inf), np.float32(-np.inf)


class RunningBest:
    """Keeps every pair that may still stand among the best k of its query.

    Each query has a floor, below which its k-th best score cannot be. A pair whose product is lower
    by more than the rounding bound is never looked at; what is looked at waits until the number of
    candidates seen has doubled, and then all but about k pairs a query leave, by the floor that
    they raise. Scores are computed anew in float64 at the end, for what is left; earlier only where
    rounding hides the order of many pairs.

    Args:
        queries: [B, M, D], float32; B at most 65,536.
        vectors: [C, D], float32; all candidates.
        bound: Of these queries.
        k: At least 1.
    """

    def __init__(
        self,
        queries: NDArray[np.float32],
        vectors: NDArray[np.float32],
        bound: RoundingBound,
        k: int,
    ) -> None:
        self._queries, self._vectors, self._bound, self._k = queries, vectors, bound, k
        self._floors = np.full(len(queries), _MINUS_INFINITY)  # [B]
        self._parts: list[Pairs] = []
        self._num_waiting = self._num_seen = self._next_cut = 0
        self._members = np.empty(_MEMBERS_AT_ONCE, np.int64)
        self._values = np.empty(_MEMBERS_AT_ONCE, np.float32)
        self._reaching = np.empty(_MEMBERS_AT_ONCE, np.bool_)

    def add(self, block: ScoredBlock) -> None:
        """Take in the next candidates."""
        group = _group_size(len(block.scores), self._k)
        slack = self._bound.of_norm(float(block.norms.max()))  # [B]
        maxima, floors = _group_maxima(block.scores, group), self._floors.copy()
        if np.isneginf(floors).any():
            self._raise_floors(maxima, slack, np.flatnonzero(np.isneginf(floors)))
        usual = max(self._k + self._k // 2, len(maxima) // 16)
        places, counts = self._promising(maxima, slack)
        if counts.max() > usual:
            self._raise_floors(maxima, slack, np.flatnonzero(counts > usual))
            places, counts = self._promising(maxima, slack)
            # Far more than k reach the floor: one long vector, rounding or equal scores hide it.
            hidden = (counts > max(usual, len(maxima) // 4)) & (self._floors == floors)
            if hidden.any():
                self._sift(block, np.flatnonzero(hidden))
                places, _ = self._promising(_group_maxima(block.scores, group), slack)
        lowest, step = self._lowest(slack), _MEMBERS_AT_ONCE // group
        for start in range(0, len(places), step):
            self._take_in(block, places[start : start + step], group, lowest)
        self._num_seen += len(block.rows)
        if self._num_seen >= self._next_cut:
            self._cut()
            self._next_cut = 2 * self._num_seen

    def hits(self) -> Hits:
        """Give the best k of each query, by the scores of `score_pairs`."""
        self._cut()
        pairs = Pairs.join(self._parts)
        scores = self._exact_scores(pairs)
        return make_hits(
            pairs.owners, pairs.rows, scores, k=self._k, num_queries=len(self._queries)
        )

    def _lowest(self, slack: NDArray[np.float64]) -> NDArray[np.float32]:
        """Give the product [B] below which a candidate of that slack cannot reach the floor."""
        lowest = np.nextafter((self._floors - slack).astype(np.float32), _MINUS_INFINITY)  # float64
        return np.maximum(lowest, np.finfo(np.float32).min)  # above -inf

    def _promising(
        self, maxima: NDArray[np.float32], slack: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Find the groups that may reach the floor: flat places in [groups, B]; counts [B]."""
        places = np.flatnonzero(maxima >= self._lowest(slack))
        return places, np.bincount(places % maxima.shape[1], minlength=maxima.shape[1])

    def _raise_floors(
        self,
        maxima: NDArray[np.float32],
        slack: NDArray[np.float64],
        queries: NDArray[np.int64],
    ) -> None:
        """Let the k-th largest group be a floor: k groups hold k candidates at least as good."""
        place = len(maxima) - self._k
        if place >= 0:
            chosen = np.ascontiguousarray(maxima[:, queries].T)
            kth = np.partition(chosen, place, axis=1)[:, place] - slack[queries]
            self._lift(queries, np.nextafter(kth.astype(np.float32), _MINUS_INFINITY))

    def _lift(self, queries: NDArray[np.integer], floors: NDArray[np.float32]) -> None:
        self._floors[queries] = np.maximum(self._floors[queries], floors)

    def _sift(self, block: ScoredBlock, queries: NDArray[np.int64]) -> None:
        """Mark by -inf what float64 products tell from floors that earlier blocks set.

        There k candidates of lower rows reach the floor, so that an equal score is not enough.
        """
        asked = self._queries[queries].astype(np.float64)
        num_queries, num_interests, dim = asked.shape
        flat = asked.swapaxes(0, 1).reshape(num_interests * num_queries, dim)  # [M * queries, D]
        products = block.vectors.astype(np.float64) @ flat.T
        if num_interests > 1:
            products = products.reshape(-1, num_interests, num_queries).max(axis=1)
        least = np.nextafter(self._floors[queries], _INFINITY)
        # A sum below the middle between two float32 is rounded to the lower one.
        middle = (least.astype(np.float64) + np.nextafter(least, _MINUS_INFINITY)) / 2
        slack = self._bound.of_norm_in_double(float(block.norms.max()))[queries]
        places, columns = np.nonzero(products < middle - slack)
        block.scores[places, queries[columns]] = _MINUS_INFINITY

    def _take_in(
        self,
        block: ScoredBlock,
        places: NDArray[np.int64],
        group: int,
        lowest: NDArray[np.float32],
    ) -> None:
        """Keep the members of groups that may reach the floor."""
        num_queries, count = len(lowest), len(places) * group
        members, values = self._members[:count], self._values[:count]
        grid = (len(places), group)
        apart = block.scores.size // group
        np.add(places[:, None], apart * np.arange(group), out=members.reshape(grid))
        np.take(block.scores, members, out=values, mode="clip")  # "clip" alone makes no copy
        reaching, least = self._reaching[:count], lowest[places % num_queries]
        np.greater_equal(values.reshape(grid), least[:, None], out=reaching.reshape(grid))
        found = np.flatnonzero(reaching)
        columns, owners = np.divmod(members[found], num_queries)
        slack = self._bound.of_pairs(owners, block.norms[columns])
        rows = block.rows[columns]
        self._parts.append(Pairs(owners.astype(np.uint16), rows, values[found], slack))
        self._num_waiting += len(found)
        if self._num_waiting > max(_PAIRS_AT_ONCE, 2 * self._k * num_queries):
            self._cut()

    def _cut(self) -> None:
        """Let pairs go that cannot reach the k-th best, and raise the floors."""
        pairs, num_queries = Pairs.join(self._parts), len(self._queries)
        pairs = pairs.take(np.argsort(pairs.owners, kind="stable"))
        counts = np.bincount(pairs.owners, minlength=num_queries)
        full = np.flatnonzero(counts >= self._k)
        if len(full):
            self._lift(full, _kth_largest(pairs.scores - pairs.slack, counts, self._k)[full])
            reaching = pairs.scores + pairs.slack >= self._floors[pairs.owners]
            pairs = pairs.take(np.flatnonzero(reaching))
            counts = np.bincount(pairs.owners, minlength=num_queries)
        hidden = counts > 2 * self._k + 32
        self._parts = self._settle(pairs, hidden) if hidden.any() else [pairs]
        self._num_waiting = 0

    def _settle(self, pairs: Pairs, queries: NDArray[np.bool_]) -> list[Pairs]:
        """Keep of some queries [B] the best k, by their exact scores; of the others all."""
        inside = queries[pairs.owners]
        chosen = pairs.take(np.flatnonzero(inside))
        scores = self._exact_scores(chosen)
        best = order_pairs(chosen.owners, chosen.rows, scores, self._k)
        owners, scores = chosen.owners[best], scores[best]
        last = np.flatnonzero(np.append(owners[1:] != owners[:-1], True))
        self._lift(owners[last], scores[last])
        exact = Pairs(owners, chosen.rows[best], scores, np.zeros_like(scores))
        return [pairs.take(np.flatnonzero(~inside)), exact]

    def _exact_scores(self, pairs: Pairs) -> NDArray[np.float32]:
        scores, rough = pairs.scores.copy(), np.flatnonzero(pairs.slack > 0)
        owners, rows = pairs.owners[rough], pairs.rows[rough]
        scores[rough] = score_pairs(self._queries, self._vectors, owners, rows)
        return scores


def _group_size(num_columns: int, k: int) -> int:
    """Choose G, a power of two: the more groups than k, the closer the k-th largest to the k-th."""
    group = PADDED_TO
    while group > 1 and num_columns < 2 * k * group:
        group //= 2
    return group


def _group_maxima(scores: NDArray[np.float32], group: int) -> NDArray[np.float32]:
    """Give the largest of every G scores that stand n' / G apart: [n' / G, B]."""
    if group == 1:
        return scores
    maxima = scores.reshape(group, -1).max(axis=0)
    return np.asarray(maxima.reshape(-1, scores.shape[1]))


def _kth_largest(
    values: NDArray[np.float32], counts: NDArray[np.int64], k: int
) -> NDArray[np.float32]:
    """Give the k-th largest of each query's values, which stand one query after another: [B]."""
    width, starts = int(counts.max()), np.cumsum(counts) - counts
    table = np.full((len(counts), width), _MINUS_INFINITY)
    shifts = np.repeat(np.arange(len(counts)) * width - starts, counts)
    table.ravel()[np.arange(len(values)) + shifts] = values
    return np.asarray(np.partition(table, width - k, axis=1)[:, width - k])
