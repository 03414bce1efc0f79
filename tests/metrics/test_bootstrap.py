"""Bootstrap intervals: coverage, pairing, ratios, undefined values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from recsys.foundations import ArgumentError, ShapeError
from recsys.metrics import bootstrap_interval, bootstrap_ratio_interval, paired_difference_interval


def make_values(size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.3, 1.0, size)


def test_agrees_with_the_normal_interval_of_a_large_sample() -> None:
    # 1.96 standard errors of 4000 values; percentile ends of 1000 resamples wobble by about 5 %.
    values = make_values(4000)
    low, high = bootstrap_interval(values, seed=1)
    half = 1.96 * values.std() / np.sqrt(4000)
    assert_allclose([low, high], [values.mean() - half, values.mean() + half], atol=0.2 * half)


def test_dealing_many_queries_into_groups_keeps_the_width() -> None:
    values = make_values(60_000)
    low, high = bootstrap_interval(values, seed=1)
    width = 2 * 1.96 * values.std() / np.sqrt(60_000)
    assert_allclose(high - low, width, rtol=0.15)
    assert low < values.mean() < high


def test_covers_the_true_mean_about_as_often_as_it_says() -> None:
    # 200 samples at level 0.9: 180 expected, standard deviation 4.2.
    inside = 0
    for seed in range(200):
        low, high = bootstrap_interval(make_values(200, seed), seed, num=300, level=0.9)
        inside += bool(low < 0.3 < high)
    assert 163 <= inside <= 194


def test_the_same_seed_gives_the_same_ends() -> None:
    values = make_values(50)
    assert bootstrap_interval(values, seed=3) == bootstrap_interval(values, seed=3)
    assert bootstrap_interval(values, seed=3) != bootstrap_interval(values, seed=4)


def test_pairing_narrows_the_difference_of_two_related_rankings() -> None:
    first = make_values(500)
    second = first - 0.05 + 0.01 * make_values(500, seed=1)
    low, high = paired_difference_interval(first, second, seed=0)
    assert 0.04 < low < high < 0.06


def test_undefined_values_leave_the_mean_of_their_own_column() -> None:
    values = np.array([[1.0, np.nan], [1.0, 0.25], [1.0, 0.25]])
    low, high = bootstrap_interval(values, seed=0)
    assert low.tolist() == high.tolist() == [1.0, 0.25]


def test_without_any_value_both_ends_are_undefined() -> None:
    for values in (np.zeros(0), np.full(4, np.nan)):
        low, high = bootstrap_interval(values, seed=0)
        assert np.isnan(low)
        assert np.isnan(high)


def test_a_ratio_weighs_queries_by_their_denominator() -> None:
    # Every query has the ratio 1/2 whatever its weight, so that no resample can differ from it.
    weights = np.array([[1.0], [3.0], [10.0]])
    low, high = bootstrap_ratio_interval(weights / 2, weights, seed=0)
    assert low.tolist() == high.tolist() == [0.5]


def test_refusals_name_the_argument() -> None:
    with pytest.raises(ArgumentError, match="`level` must be between 0 and 1, got 95"):
        bootstrap_interval(make_values(3), seed=0, level=95)
    with pytest.raises(ArgumentError, match="`num` must be above 0"):
        bootstrap_interval(make_values(3), seed=0, num=0)
    with pytest.raises(ShapeError, match="`second` must have shape"):
        paired_difference_interval(make_values(3), make_values(2), seed=0)
    with pytest.raises(ShapeError, match="`denominators` must have shape"):
        bootstrap_ratio_interval(make_values(3), make_values(2), seed=0)
