"""Which candidates are ranked: all of the catalogue, or those that training did not meet.

Dimensions: U queries, N candidates, A of them ranked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.data import PreparedDataset
from recsys.evaluation.queries import EvaluationQueries
from recsys.foundations import DataError, check_choice, is_among

CANDIDATE_RULES = ("all", "cold")

_QUERIES_AT_ONCE = 512
_CHOICE_K = 100


@dataclass(frozen=True)
class RankedCandidates:
    """What a list may hold.

    Attributes:
        rule: "all": the whole catalogue; "cold": the candidates without training events that have
            events in the part.
        rows: [A], int64, rising; None: all.
        num: A.
    """

    rule: str
    rows: NDArray[np.int64] | None
    num: int

    @property
    def choice_k(self) -> int:
        """Give the k of the mean NDCG@k that settings of a model are chosen by: 100, or A if less.

        It moves with every relevant candidate of the first hundred, unlike the recall of a short
        list, and so tells settings apart by a few hundred users.
        """
        return min(_CHOICE_K, self.num)

    def describe(self) -> str:
        """Say what is ranked."""
        if self.rows is None:
            return "the whole catalogue"
        return f"the {self.num:,} candidates without training events that have events in the part"

    def judge(self, queries: EvaluationQueries) -> EvaluationQueries:
        """Keep of the truth what is ranked, and the queries that have any of it."""
        return queries if self.rows is None else queries.judged_on(self.rows)

    def chance(self, ks: Sequence[int]) -> dict[str, float]:
        """Give the recall@k of a list drawn at random, k / A; none where all are ranked.

        With all, items that are left out as seen would make the number depend on the user.
        """
        return {} if self.rows is None else {f"recall_at_{k}": min(k / self.num, 1.0) for k in ks}

    def blocks(self, queries: EvaluationQueries) -> Iterator[tuple[EvaluationQueries, "Judged"]]:
        """Yield blocks of at most 512 queries, each with those of it whose lists are judged."""
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            block = queries.slice(start, start + _QUERIES_AT_ONCE)
            yield block, Judged(self.judge(block), self._asked(block))

    def _asked(self, queries: EvaluationQueries) -> NDArray[np.int64]:
        if self.rows is None:
            return np.arange(len(queries))
        inside = is_among(queries.truth.rows, self.rows)
        return np.flatnonzero(np.bincount(queries.truth.owners()[inside], minlength=len(queries)))


@dataclass(frozen=True)
class Judged:
    """Queries of a block whose lists are judged.

    Attributes:
        queries: With what is ranked as their truth.
        places: Their positions in the block.
    """

    queries: EvaluationQueries
    places: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.places)


def choose_candidates(
    dataset: PreparedDataset, queries: EvaluationQueries, rule: str
) -> RankedCandidates:
    """Choose what is ranked.

    Args:
        dataset: The prepared data set.
        queries: All of a part, which they stand for.
        rule: "all" or "cold".

    Raises:
        ArgumentError: `rule` is another word.
        DataError: "cold", and no candidate without training events has events in the part.
    """
    check_choice("rule", rule, CANDIDATE_RULES)
    if rule == "all":
        return RankedCandidates(rule, None, dataset.num_items)
    chosen = np.unique(queries.truth.rows)
    candidates = chosen[chosen < dataset.num_items].astype(np.int64)
    rows = candidates[dataset.items.counts[candidates] == 0]
    if len(rows) == 0:
        raise DataError(
            "evaluation.candidates=cold finds no candidate without training events among those "
            f"that were chosen in the part of {dataset.path}; split=cold_items holds items out."
        )
    return RankedCandidates(rule, rows, len(rows))
