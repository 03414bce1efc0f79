"""Whatever ranks the catalogue by a user's history.

Dimensions: B queries of a block, N candidates.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recsys.evaluation.popularity import PopularityList
from recsys.evaluation.queries import EvaluationQueries
from recsys.foundations import Progress, Ragged
from recsys.metrics import distinct, num_relevant_of, recall_at_k, relevance_of, top_k

_QUERIES_AT_ONCE = 512


class Ranker(Protocol):
    """Ranks candidates for histories."""

    def top(self, histories: Ragged, k: int, exclude: Ragged) -> Ragged:
        """Give the k best candidates of each query that it may have.

        Args:
            histories: B lists of item rows in [0, N), oldest first.
            k: At least 1.
            exclude: B lists of item rows in [0, N).

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
        self._list = PopularityList(counts)

    def top(self, histories: Ragged, k: int, exclude: Ragged) -> Ragged:  # noqa: ARG002
        """Give each query the first k of the order that it may have; see `Ranker.top`."""
        return self._list.top(k, exclude)


class FilledRanker:
    """A ranker whose lists go on with popular candidates where they are shorter than asked for.

    Args:
        ranker: Ranks what it can.
        counts: [N], training events of each candidate.

    Attributes:
        num_filled: Lists that were too short so far.
    """

    def __init__(self, ranker: Ranker, counts: NDArray[np.int64]) -> None:
        self._ranker, self._popular = ranker, PopularityList(counts)
        self.num_filled = 0

    def top(self, histories: Ragged, k: int, exclude: Ragged) -> Ragged:
        """Give the k best candidates; shorter only where fewer may be given."""
        lists = self._ranker.top(histories, k, exclude)
        short = lists.lengths < k
        if not short.any():
            return lists
        popular = self._popular.top(k, exclude)
        self.num_filled += int((short & (popular.lengths > lists.lengths)).sum())
        owners = np.concatenate([lists.owners(), popular.owners()])
        rows = np.concatenate([lists.rows, popular.rows])
        return top_k(distinct(Ragged.from_pairs(owners, rows, len(lists))), k)


def rank_blocks(
    queries: EvaluationQueries, ranker: Ranker, k: int, *, exclude_seen: bool, what: str
) -> Iterator[tuple[EvaluationQueries, Ragged]]:
    """Rank for blocks of queries; yield each block with its lists.

    Args:
        queries: What is asked.
        ranker: Ranks.
        k: Length of the lists.
        exclude_seen: Whether items of a user's history are left out.
        what: Stands in the progress bar.
    """
    with Progress(what, len(queries), "users") as progress:
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            block = queries.slice(start, start + _QUERIES_AT_ONCE)
            exclude = block.seen if exclude_seen else Ragged.empty(len(block))
            yield block, ranker.top(block.histories, k, exclude)
            progress.advance(len(block))


def mean_recall(queries: EvaluationQueries, ranker: Ranker, k: int, *, exclude_seen: bool) -> float:
    """Compute the mean recall@k, as settings are chosen by it."""
    total = 0.0
    for block, lists in rank_blocks(
        queries, ranker, k, exclude_seen=exclude_seen, what="validating"
    ):
        relevant = num_relevant_of(block.truth)
        total += float(recall_at_k(relevance_of(lists, block.truth), relevant, k).sum())
    return total / len(queries)
