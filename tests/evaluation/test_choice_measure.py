"""What settings are chosen by: values worked by hand, what is left out, lists of up to 100."""

import numpy as np
import pytest

from recsys.data import FeatureSchema, FeatureTable
from recsys.evaluation import EvaluationQueries, RankedCandidates, choice_k, choice_ndcg
from recsys.foundations import Ragged

EVERYTHING = RankedCandidates("all", None, 6)


def make_queries(truth: list[list[int]], seen: list[list[int]]) -> EvaluationQueries:
    nothing = FeatureTable.missing(FeatureSchema(), len(truth))
    had, chosen = make_lists(seen), make_lists(truth)
    return EvaluationQueries(
        user_rows=np.arange(len(truth)),
        histories=had,
        seen=had,
        truth=chosen,
        chosen=chosen,
        context=nothing,
        features=nothing,
        known=np.ones(len(truth), bool),
    )


def make_lists(lists: list[list[int]]) -> Ragged:
    offsets = np.cumsum([0, *map(len, lists)])
    return Ragged(offsets, np.array([row for rows in lists for row in rows], dtype=np.int64))


def ndcg(
    queries: EvaluationQueries,
    ranked: RankedCandidates,
    order: list[int],
    *,
    exclude_seen: bool = True,
) -> float:
    """Rank in one order for everyone, without what is excluded."""

    def rank(asked: EvaluationQueries, k: int, exclude: Ragged) -> Ragged:
        lists = [[row for row in order if row not in exclude[n]][:k] for n in range(len(asked))]
        return make_lists(lists)

    return choice_ndcg(queries, rank, exclude_seen=exclude_seen, ranked=ranked)


def test_it_equals_the_value_worked_by_hand() -> None:
    queries = make_queries([[2], [0, 4]], [[1], []])
    # The lists: 0 2 3 4 5 without the seen 1, and 0 1 2 3 4 5. Query 0 has its item in place 2,
    # 1 / log2(3) of the best. Query 1 has places 1 and 5, and the best are 1 and 2.
    first = 1 / np.log2(3)
    second = (1 + 1 / np.log2(6)) / (1 + 1 / np.log2(3))
    found = ndcg(queries, EVERYTHING, [0, 1, 2, 3, 4, 5])
    assert found == pytest.approx((first + second) / 2, abs=1e-12)
    # With what was seen, query 0 has its item in place 3: 1 / log2(4).
    found = ndcg(queries, EVERYTHING, [0, 1, 2, 3, 4, 5], exclude_seen=False)
    assert found == pytest.approx((1 / 2 + second) / 2, abs=1e-12)


def test_queries_that_chose_nothing_of_what_is_ranked_leave_the_mean() -> None:
    cold = RankedCandidates("cold", np.array([3, 5]), 2)
    queries = make_queries([[2], [5], [0, 3]], [[], [], []])
    # Query 1 has its item in place 2 of two; query 2 is judged on item 3 alone, in place 1.
    assert ndcg(queries, cold, [3, 5]) == pytest.approx((1 / np.log2(3) + 1) / 2, abs=1e-12)
    assert ndcg(make_queries([[2]], [[]]), cold, [3, 5]) == 0
    assert ndcg(make_queries([], []), EVERYTHING, [3, 5]) == 0


def test_lists_hold_a_hundred_candidates_or_the_whole_catalogue() -> None:
    order = list(range(150))
    wide = RankedCandidates("all", None, 150)
    assert choice_k(wide) == 100
    assert choice_k(EVERYTHING) == 6
    assert ndcg(make_queries([[99]], [[]]), wide, order) == pytest.approx(1 / np.log2(101))
    assert ndcg(make_queries([[100]], [[]]), wide, order) == 0


def test_every_block_of_queries_counts() -> None:
    queries = make_queries([[0]] * 600 + [[1]] * 600, [[]] * 1200)
    assert ndcg(queries, EVERYTHING, [0, 1]) == pytest.approx((1 + 1 / np.log2(3)) / 2)
