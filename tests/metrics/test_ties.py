"""What equal scores do: ranks, the pessimistic list, and the tie across the cut."""

import numpy as np
import pytest

from recsys.foundations import ArgumentError, Ragged, ShapeError
from recsys.metrics import expected_over_ties, pessimistic_hits, recall_at_k, tied_at_k, tied_ranks


def make_hits(*lists: list[int]) -> Ragged:
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return Ragged(offsets, np.array([hit for one in lists for hit in one], bool))


def test_ranks_of_one_positive_among_equal_scores() -> None:
    ranks = tied_ranks(np.array([[1.0, 3.0, 3.0, 3.0]]), np.array([2]))
    assert (ranks.optimistic[0], ranks.by_row[0], ranks.pessimistic[0]) == (1, 2, 3)
    assert ranks.mean.tolist() == [2.0]


def test_a_hit_moves_behind_the_misses_of_its_score_only() -> None:
    scores = np.array([5.0, 4.0, 4.0, 1.0])
    moved = pessimistic_hits(make_hits([1, 1, 0, 0]), scores, np.array([True]))
    assert moved.rows.tolist() == [True, False, True, False]


def test_a_tie_that_runs_past_the_end_of_the_list_is_a_miss_unless_nothing_is_left() -> None:
    hits, scores = make_hits([1, 1], [1, 1]), np.array([2.0, 1.0, 2.0, 1.0])
    moved = pessimistic_hits(hits, scores, np.array([False, True]))
    assert moved.rows.tolist() == [True, False, True, True]


def test_constant_scores_give_no_pessimistic_recall() -> None:
    moved = pessimistic_hits(make_hits([1, 0, 0, 0]), np.zeros(4), np.array([False]))
    assert recall_at_k(moved, np.array([1]), 3).tolist() == [0.0]


def test_no_lists_and_empty_lists_are_fine() -> None:
    assert len(pessimistic_hits(make_hits(), np.zeros(0), np.zeros(0, bool))) == 0
    assert len(pessimistic_hits(make_hits([], []), np.zeros(0), np.ones(2, bool))) == 2
    assert pessimistic_hits(make_hits([1], []), np.ones(1), np.ones(2, bool)).rows.tolist() == [1]


def test_a_tie_across_the_cut_needs_a_candidate_behind_it() -> None:
    lists = Ragged(np.array([0, 3, 5]), np.arange(5))
    scores = np.array([3.0, 2.0, 2.0, 1.0, 1.0])
    assert tied_at_k(lists, scores, 2).tolist() == [True, False]
    assert tied_at_k(lists, scores, 1).tolist() == [False, True]


def test_the_expectation_over_ties_lies_between_the_extremes() -> None:
    # Places 2 to 4 are equally likely; k = 3 keeps two of the three.
    ranks = tied_ranks(np.array([[9.0, 5.0, 5.0, 5.0]]), np.array([1]))
    expected = expected_over_ties(ranks, 3)
    assert expected["hit_rate"].tolist() == [2 / 3]
    assert expected["mrr"][0] == pytest.approx((1 / 2 + 1 / 3) / 3, rel=1e-12)


def test_refusals() -> None:
    with pytest.raises(ShapeError, match="`positive_rows` must have shape"):
        tied_ranks(np.zeros((2, 3)), np.array([0]))
    with pytest.raises(ArgumentError, match="`k` must be above 0"):
        expected_over_ties(tied_ranks(np.zeros((1, 3)), np.array([0])), 0)
