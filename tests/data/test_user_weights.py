"""Weights by user, against values worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.data import Events, FeatureSchema, FeatureTable, weigh_by_user
from recsys.foundations import ArgumentError


def make_events(users: list[int], weights: list[float] | None = None) -> Events:
    count = len(users)
    return Events(
        np.array(users, np.int64),
        np.arange(count),
        None,
        None if weights is None else np.array(weights, np.float32),
        FeatureTable.missing(FeatureSchema(), count),
    )


def test_between_the_ends_a_weight_is_a_power_worked_by_hand() -> None:
    # User 0 has 4 events, user 1 has 1. Power 1/2: 1/2 each and 1; they sum to 3 in place of 5.
    weights = weigh_by_user(make_events([0, 0, 0, 0, 1]), 0.5).weights
    assert weights == pytest.approx(np.array([1 / 2, 1 / 2, 1 / 2, 1 / 2, 1]) * 5 / 3)


def test_at_power_1_the_weights_of_each_user_sum_to_the_same() -> None:
    weights = weigh_by_user(make_events([0, 0, 0, 2, 5, 5]), 1.0).weights
    assert weights is not None
    assert np.bincount([0, 0, 0, 2, 5, 5], weights)[[0, 2, 5]] == pytest.approx(np.full(3, 2.0))


def test_at_power_0_the_events_stay_as_they_are() -> None:
    events = make_events([0, 0, 1])
    assert weigh_by_user(events, 0.0) is events


@given(st.lists(st.integers(0, 4), max_size=20), st.floats(0, 1))
def test_the_sum_of_the_weights_stays_what_it_was(users: list[int], power: float) -> None:
    before = make_events(sorted(users), [1.0 + user for user in sorted(users)])
    after = weigh_by_user(before, power)
    assert before.weights is not None
    assert after.weights is not None
    assert after.weights.sum() == pytest.approx(before.weights.sum(), rel=1e-5)


def test_weights_of_the_log_stay_factors_and_zeros_stay_zeros() -> None:
    weights = weigh_by_user(make_events([0, 0, 1], [1.0, 0.0, 3.0]), 1.0).weights
    assert weights == pytest.approx(np.array([0.5, 0, 3]) * 4 / 3.5)
    assert weigh_by_user(make_events([0, 0], [0, 0]), 1.0).weights == pytest.approx([0, 0])


@pytest.mark.parametrize("power", [-0.1, 1.1, float("nan")])
def test_a_power_out_of_range_is_refused(power: float) -> None:
    with pytest.raises(ArgumentError, match="`power` must be from 0 to 1, got"):
        weigh_by_user(make_events([0]), power)
