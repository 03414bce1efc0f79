"""Coverage, popularity of what is shown, and the overlap of two lists, worked by hand."""

import numpy as np
from numpy.testing import assert_allclose

from recsys.foundations import Ragged
from recsys.metrics import coverage_at_k, mean_popularity_at_k, overlap_at_k


def make_ragged(lists: list[list[int]]) -> Ragged:
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return Ragged(offsets, np.array([row for one in lists for row in one], np.int64))


def test_coverage_counts_a_candidate_once_however_often_it_is_shown() -> None:
    lists = make_ragged([[0, 1, 2], [1, 0, 3], []])
    assert coverage_at_k(lists, 8, 2) == 2 / 8
    assert coverage_at_k(lists, 8, 3) == 4 / 8


def test_mean_popularity_is_undefined_for_an_empty_list() -> None:
    counts = np.array([10, 4, 0])
    popularity = mean_popularity_at_k(make_ragged([[0, 1, 2], [2], []]), counts, 2)
    assert_allclose(popularity, [7, 0, np.nan])


def test_overlap_ignores_order_and_divides_by_a_short_reference() -> None:
    found = make_ragged([[2, 1, 9], [4], []])
    exact = make_ragged([[1, 2, 3], [4, 5], []])
    assert_allclose(overlap_at_k(found, exact, 2), [1, 0.5, np.nan])
    assert_allclose(overlap_at_k(found, exact, 3), [2 / 3, 0.5, np.nan])
