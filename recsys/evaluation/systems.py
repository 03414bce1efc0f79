"""Three rankings of the catalogue, judged side by side.

Dimensions: U queries, B queries of a block, M interests of a query, D embedding width.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.evaluation.dial_judge import DialJudge
from recsys.evaluation.measures import ListJudge, Values
from recsys.evaluation.popularity import PopularityList
from recsys.evaluation.queries import EvaluationQueries
from recsys.foundations import Ragged
from recsys.index import Hits, Index, OwnItems, Search, search_with_bonus
from recsys.metrics import (
    num_relevant_of,
    overlap_at_k,
    pessimistic_hits,
    recall_at_k,
    relevance_of,
    tied_at_k,
)


@dataclass(frozen=True)
class _Scored:
    """Ranked lists with the score of each entry, and whether nothing is left behind them."""

    lists: Ragged
    scores: NDArray[np.floating]
    complete: NDArray[np.bool_]


class Systems:
    """The three systems that are compared: exact ranking, approximate index, popularity.

    Args:
        ks: Lengths of the list that is judged, rising.
        counts: [N], training events of each candidate.
        exact: Exact search.
        approximate: The index that serves, or None.
        dial: Judges the exact ranking with the popularity dial, or None.
        allowed: [A], int64, rising, the only rows that are ranked; None: all N.

    Attributes:
        model: Judge of the exact ranking.
        index: Judge of what comes through the index; without blocks where there is none.
        popularity: Judge of the baseline.
        dial: As given.
    """

    def __init__(
        self,
        ks: tuple[int, ...],
        counts: NDArray[np.int64],
        exact: Index,
        approximate: Index | None,
        *,
        dial: DialJudge | None = None,
        allowed: NDArray[np.int64] | None = None,
    ) -> None:
        self.ks, self._exact, self._approximate = ks, exact, approximate
        self.dial, self._popular = dial, PopularityList(counts, allowed)
        self._allowed, ranked = allowed, None if allowed is None else len(allowed)
        self.model, self.index = (ListJudge(ks, counts, ranked) for _ in range(2))
        self.popularity = ListJudge(ks, counts, ranked)
        self._ties: list[Values] = []

    def add(
        self,
        block: EvaluationQueries,
        vectors: NDArray[np.float32],
        exclude_seen: bool,
        own: OwnItems | None = None,
    ) -> None:
        """Let every system rank for a block and judge it.

        Args:
            block: B queries.
            vectors: [B, D] or [B, M, D], those of the queries.
            exclude_seen: Whether items of a user's history are left out.
            own: What is added to the scores of items that the users had; None: nothing.
        """
        exclude = block.seen if exclude_seen else Ragged.empty(len(block))
        reach = self.ks[-1] + 1  # one more than is judged, to see a tie across the cut
        popular = self._popular.top(reach, exclude)
        fallback = block.nothing_known()

        def ranked_by(search: Search) -> Hits:
            return search_with_bonus(
                search, vectors, reach, own, exclude=exclude, allowed=self._allowed
            )

        hits = ranked_by(self._exact.search)
        found = self._with_fallback(hits, popular, fallback, reach)
        self.model.add(found.lists, block.truth)
        self.popularity.add(popular, block.truth)
        self._ties.append(_ties(found, block.truth, self.ks))
        if self.dial is not None:
            self.dial.add(block, vectors, found.lists, exclude=exclude, own=own)
        if self._approximate is not None:
            hits = ranked_by(self._approximate.search)
            near = self._with_fallback(hits, popular, fallback, reach)
            same = {
                f"index_recall_at_{k}": overlap_at_k(near.lists, found.lists, k) for k in self.ks
            }
            self.index.add(near.lists, block.truth, **same)

    def ties(self) -> Values:
        """Give `tied_at_10` and `pessimistic_recall_at_10` and so on of the exact ranking: [U]."""
        return {
            name: np.concatenate([block[name] for block in self._ties]) for name in self._ties[0]
        }

    def _with_fallback(
        self, hits: Hits, popular: Ragged, fallback: NDArray[np.bool_], reach: int
    ) -> _Scored:
        """Put popular items where `fallback` says so."""
        lists, scores = hits.lists, hits.scores
        if fallback.any():
            both = Ragged(
                np.concatenate([lists.offsets, lists.offsets[-1] + popular.offsets[1:]]),
                np.arange(len(lists.rows) + len(popular.rows)),
            )
            chosen = both.take(np.arange(len(fallback)) + len(fallback) * fallback)
            rows = np.concatenate([lists.rows, popular.rows])[chosen.rows]
            more = self._popular.counts[popular.rows].astype(np.float64)
            scores = np.concatenate([scores.astype(np.float64), more])[chosen.rows]
            lists = Ragged(chosen.offsets, rows)
        return _Scored(lists, scores, lists.lengths < reach)


def _ties(found: _Scored, truth: Ragged, ks: tuple[int, ...]) -> Values:
    hits = pessimistic_hits(relevance_of(found.lists, truth), found.scores, found.complete)
    relevant = num_relevant_of(truth)
    values: Values = {}
    for k in ks:
        values[f"tied_at_{k}"] = tied_at_k(found.lists, found.scores, k).astype(np.float64)
        values[f"pessimistic_recall_at_{k}"] = recall_at_k(hits, relevant, k)
    return values
