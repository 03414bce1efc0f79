"""Whatever ranks the candidates: by a user's history alone, or by all that is known of the user.

Dimensions: B queries of a block, N candidates, A of them ranked.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recsys.evaluation.candidates import RankedCandidates
from recsys.evaluation.own_items import Bonus
from recsys.evaluation.popularity import PopularityList
from recsys.evaluation.queries import EvaluationQueries
from recsys.foundations import Progress, Ragged
from recsys.index import Index, search_with_bonus
from recsys.metrics import distinct, num_relevant_of, recall_at_k, relevance_of, top_k

Rank = Callable[[EvaluationQueries, int, Ragged], Ragged]
"""Gives the k best candidates of each of B queries that are not among those to exclude."""


class Ranker(Protocol):
    """Ranks candidates for histories."""

    def top(
        self,
        histories: Ragged,
        k: int,
        exclude: Ragged,
        allowed: NDArray[np.int64] | None = None,
    ) -> Ragged:
        """Give the k best candidates of each query that it may have.

        Args:
            histories: B lists of item rows in [0, N), oldest first; repeats stay.
            k: At least 1.
            exclude: B lists of item rows in [0, N).
            allowed: [A], rising, the only rows that may be given; None: all.

        Returns:
            B lists of distinct item rows; shorter than k where nothing speaks for the rest.
        """
        ...


class PopularityRanker:
    """One order of the catalogue for everyone.

    Args:
        counts: [N]; higher ranks first, equal counts by row.
    """

    def __init__(self, counts: NDArray[np.int64]) -> None:
        self._counts = counts
        self._list = PopularityList(counts)
        self._allowed: NDArray[np.int64] | None = None

    def top(
        self,
        histories: Ragged,  # noqa: ARG002
        k: int,
        exclude: Ragged,
        allowed: NDArray[np.int64] | None = None,
    ) -> Ragged:
        """Give each query the first k of the order that it may have; see `Ranker.top`."""
        if allowed is not self._allowed:  # the same for every block of an evaluation
            self._list, self._allowed = PopularityList(self._counts, allowed), allowed
        return self._list.top(k, exclude)


class FilledRank:
    """A ranking whose lists go on with popular candidates where they are shorter than asked for.

    Args:
        rank: Ranks what it can.
        popular: What the lists go on with; what it lacks is not ranked.

    Attributes:
        num_filled: Lists that were too short so far.
    """

    def __init__(self, rank: Rank, popular: PopularityList) -> None:
        self._rank, self._popular = rank, popular
        self.num_filled = 0

    def __call__(self, queries: EvaluationQueries, k: int, exclude: Ragged) -> Ragged:
        """Give the k best candidates; shorter only where fewer may be given."""
        lists = self._rank(queries, k, exclude)
        short = lists.lengths < k
        if not short.any():
            return lists
        popular = self._popular.top(k, exclude)
        self.num_filled += int((short & (popular.lengths > lists.lengths)).sum())
        owners = np.concatenate([lists.owners(), popular.owners()])
        rows = np.concatenate([lists.rows, popular.rows])
        return top_k(distinct(Ragged.from_pairs(owners, rows, len(lists))), k)


def rank_by_history(ranker: Ranker, ranked: RankedCandidates) -> Rank:
    """Let a ranker rank for queries, of whom it reads the history alone."""

    def rank(queries: EvaluationQueries, k: int, exclude: Ragged) -> Ragged:
        return ranker.top(queries.histories, k, exclude, ranked.rows)

    return rank


def rank_by_vectors(
    embed: Callable[[EvaluationQueries], NDArray[np.float32]],
    index: Index,
    ranked: RankedCandidates,
    *,
    bonus: Bonus | None = None,
) -> Rank:
    """Let a model rank for queries; those of whom nothing is known get empty lists.

    Args:
        embed: Gives the vectors of a block of queries, as the index takes them.
        index: Searches all N candidates.
        ranked: What is ranked.
        bonus: Of items that the users had; None: there is none.
    """

    def rank(queries: EvaluationQueries, k: int, exclude: Ragged) -> Ragged:
        own = None if bonus is None else bonus(queries)
        vectors, allowed = embed(queries), ranked.rows
        hits = search_with_bonus(index.search, vectors, k, own, exclude=exclude, allowed=allowed)
        lists = hits.lists
        kept = ~queries.nothing_known()[lists.owners()]
        return Ragged.from_pairs(lists.owners()[kept], lists.rows[kept], len(lists))

    return rank


def rank_blocks(
    queries: EvaluationQueries,
    rank: Rank,
    ranked: RankedCandidates,
    k: int,
    *,
    exclude_seen: bool,
    what: str,
) -> Iterator[tuple[EvaluationQueries, Ragged]]:
    """Rank for blocks of queries; yield each block that is judged with its lists.

    Args:
        queries: What is asked.
        rank: Ranks.
        ranked: What is ranked, by `rank` too.
        k: Length of the lists.
        exclude_seen: Whether items of a user's history are left out.
        what: Stands in the progress bar.
    """
    with Progress(what, len(queries), "users") as progress:
        for block, judged in ranked.blocks(queries):
            if len(judged):
                asked = judged.queries
                exclude = asked.seen if exclude_seen else Ragged.empty(len(asked))
                yield asked, rank(asked, k, exclude)
            progress.advance(len(block))


def mean_recall(
    queries: EvaluationQueries,
    ranker: Ranker,
    k: int,
    *,
    exclude_seen: bool,
    ranked: RankedCandidates,
) -> float:
    """Compute the mean recall@k, as settings are chosen by it."""
    total, number = 0.0, 0
    rank = rank_by_history(ranker, ranked)
    for block, lists in rank_blocks(
        queries, rank, ranked, k, exclude_seen=exclude_seen, what="validating"
    ):
        relevant = num_relevant_of(block.truth)
        total += float(recall_at_k(relevance_of(lists, block.truth), relevant, k).sum())
        number += len(block)
    return total / number
