"""Popularity as a log share and as a percentile, against values worked by hand."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recsys.metrics import log_popularity, popularity_percentiles


def test_log_popularity_counts_no_event_as_half_a_one() -> None:
    shares = np.exp(log_popularity(np.array([6, 1, 0, 3])))
    assert np.allclose(shares, np.array([6, 1, 0.5, 3]) / 10.5, rtol=1e-12)


def test_a_percentile_is_the_share_of_less_popular_candidates_and_half_of_the_equal_ones() -> None:
    found = popularity_percentiles(np.array([7, 0, 3, 3]))
    assert found.tolist() == [3.5 / 4, 0.5 / 4, 2 / 4, 2 / 4]


@given(counts=st.lists(st.integers(0, 20), min_size=1, max_size=60))
def test_the_mean_percentile_of_the_catalogue_is_a_half_and_the_shares_sum_to_1(
    counts: list[int],
) -> None:
    some = np.array(counts)
    percentiles = popularity_percentiles(some)
    assert math.isclose(percentiles.mean(), 0.5, rel_tol=1e-12)
    assert np.array_equal(np.argsort(percentiles, kind="stable"), np.argsort(some, kind="stable"))
    assert math.isclose(np.exp(log_popularity(some)).sum(), 1.0, rel_tol=1e-12)
