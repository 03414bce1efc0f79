"""All metrics of a system's lists, gathered block by block.

Dimensions: B queries of a block, U queries in all, T relevant candidates of all queries.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, Ragged
from recsys.metrics import (
    capped_recall_at_k,
    hit_rate_at_k,
    map_at_k,
    mean_popularity_at_k,
    mrr_at_k,
    ndcg_at_k,
    num_relevant_of,
    precision_at_k,
    ranks_of,
    recall_at_k,
    relevance_of,
    top_k,
)

Values = dict[str, NDArray[np.float64]]


def check_ks(ks: Sequence[int]) -> tuple[int, ...]:
    """Give the list lengths in rising order, each once.

    Raises:
        ArgumentError: There is none, or one is below 1.
    """
    if not ks or any(k < 1 for k in ks):
        raise ArgumentError(f"`ks` must hold numbers of at least 1, got {list(ks)}.")
    return tuple(sorted(set(ks)))


def shown_k(ks: Sequence[int]) -> int:
    """Choose the one length that stands for all: 10 where it is among them, else the largest."""
    return 10 if 10 in ks else max(ks)


def measure_lists(lists: Ragged, truth: Ragged, ks: Sequence[int]) -> Values:
    """Compute every metric at every k.

    Args:
        lists: B ranked lists of candidate rows.
        truth: B lists of relevant rows.
        ks: Lengths of the list that is judged.

    Returns:
        `recall_at_10` and so on -> [B], float64; NaN where undefined.
    """
    hits, relevant = relevance_of(lists, truth), num_relevant_of(truth)
    values: Values = {}
    for k in ks:
        values[f"recall_at_{k}"] = recall_at_k(hits, relevant, k)
        values[f"capped_recall_at_{k}"] = capped_recall_at_k(hits, relevant, k)
        values[f"precision_at_{k}"] = precision_at_k(hits, k)
        values[f"hit_rate_at_{k}"] = hit_rate_at_k(hits, k)
        values[f"ndcg_at_{k}"] = ndcg_at_k(hits, relevant, k)
        values[f"mrr_at_{k}"] = mrr_at_k(hits, k)
        values[f"map_at_{k}"] = map_at_k(hits, relevant, k)
    return values


class ListJudge:
    """Takes one system's lists a block at a time and keeps a number a query and metric.

    Args:
        ks: Lengths of the list that is judged.
        counts: [N], training events of each candidate.
        ranked: How many candidates are ranked, whose share is the coverage; None: all N.
    """

    def __init__(
        self, ks: Sequence[int], counts: NDArray[np.int64], ranked: int | None = None
    ) -> None:
        self._ks, self._counts = tuple(ks), counts
        self._num_ranked = len(counts) if ranked is None else ranked
        self._blocks: list[Values] = []
        self._ranks: list[NDArray[np.float64]] = []
        self._shown = {k: np.zeros(len(counts), bool) for k in ks}

    def add(self, lists: Ragged, truth: Ragged, **more: NDArray[np.float64]) -> None:
        """Judge a block.

        Args:
            lists: B ranked lists of candidate rows.
            truth: B lists of relevant rows.
            more: Further values of these queries to keep, each [B].
        """
        values = measure_lists(lists, truth, self._ks)
        for k in self._ks:
            values[f"mean_popularity_at_{k}"] = mean_popularity_at_k(lists, self._counts, k)
            self._shown[k][top_k(lists, k).rows] = True
        self._blocks.append(values | more)
        self._ranks.append(ranks_of(lists, truth).rows)

    def values(self) -> Values:
        """Give the values of all blocks: name -> [U]."""
        names = self._blocks[0] if self._blocks else {}
        return {name: np.concatenate([block[name] for block in self._blocks]) for name in names}

    def ranks(self) -> NDArray[np.float64]:
        """Give the rank of every relevant candidate: [T]; infinity where it is not in the list."""
        return np.concatenate(self._ranks) if self._ranks else np.zeros(0)

    def coverage(self) -> dict[str, float]:
        """Give the share of what is ranked that stands in anyone's list: `coverage_at_10`, ..."""
        return {
            f"coverage_at_{k}": float(shown.sum() / self._num_ranked)
            for k, shown in self._shown.items()
        }
