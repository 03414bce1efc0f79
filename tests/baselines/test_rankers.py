"""Neighbours of items, EASE and recent counts against slow versions and values worked by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recsys.baselines import Attempt, Ease, Interactions, ItemKnn, Option, choose, recent_counts
from recsys.data import Events, FeatureSchema, FeatureTable
from recsys.foundations import ArgumentError, Ragged

DAY = 86_400 * 1_000_000  # µs


def make_interactions(
    matrix: NDArray[np.int64], timestamps: NDArray[np.int64] | None = None
) -> Interactions:
    users, items = np.nonzero(matrix)
    return Interactions(users, items, timestamps, matrix.shape[1])


def make_matrix(num_users: int = 30, num_items: int = 12, seed: int = 0) -> NDArray[np.int64]:
    matrix = (np.random.default_rng(seed).random((num_users, num_items)) < 0.3).astype(np.int64)
    matrix[0, -1] = 1  # so that the last item is there
    return matrix


def make_ragged(lists: list[list[int]]) -> Ragged:
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return Ragged(offsets, np.array([row for one in lists for row in one], np.int64))


def make_histories(matrix: NDArray[np.int64]) -> Ragged:
    return make_ragged([np.flatnonzero(row).tolist() for row in matrix])


def expected_top(scores: NDArray[np.float64], k: int, banned: list[int]) -> list[int]:
    order = sorted(range(len(scores)), key=lambda item: (-scores[item], item))
    return [item for item in order if item not in banned and scores[item] > -np.inf][:k]


def test_events_join_without_items_that_are_no_candidates_and_repeats_count_once() -> None:
    def make_events(users: list[int], items: list[int]) -> Events:
        context = FeatureTable.missing(FeatureSchema(()), len(users))
        times = np.arange(len(users), dtype=np.int64)
        return Events(np.array(users), np.array(items), times, None, context)

    parts = [make_events([0, 0, 1], [1, 1, 0]), make_events([2], [5])]
    joined = Interactions.of(parts, num_items=2, clock="time")
    assert joined.matrix.toarray().tolist() == [[0, 1], [1, 0]]
    assert joined.timestamps is not None
    assert joined.timestamps.tolist() == [0, 1, 2]
    assert Interactions.of(parts, num_items=2, clock="order").timestamps is None


def test_ease_equals_the_ridge_regression_of_each_item_on_the_others() -> None:
    matrix = make_matrix()
    weights = Ease(make_interactions(matrix), regularization=3.0).weights
    for item in range(matrix.shape[1]):
        others = [column for column in range(matrix.shape[1]) if column != item]
        inputs = matrix[:, others].astype(float)
        gram = inputs.T @ inputs + 3.0 * np.eye(len(others))
        solution = np.linalg.solve(gram, inputs.T @ matrix[:, item])
        np.testing.assert_allclose(weights[others, item], solution, rtol=0, atol=1e-12)
        assert weights[item, item] == 0


def test_ease_ranks_by_history_times_weights_and_scores_nothing_without_a_history() -> None:
    matrix = make_matrix()
    ease = Ease(make_interactions(matrix), regularization=3.0)
    histories = make_histories(np.vstack([matrix[:4], np.zeros((1, 12), np.int64)]))
    lists = ease.top(histories, 5, histories)
    for user in range(4):
        scores = matrix[user] @ ease.weights
        assert lists[user].tolist() == expected_top(scores, 5, histories[user].tolist())
    assert lists[4].tolist() == []
    some = ease.top(histories, 5, histories, np.array([1, 4, 7, 11]))
    for user in range(4):
        banned = [*histories[user].tolist(), *({*range(12)} - {1, 4, 7, 11})]
        assert some[user].tolist() == expected_top(matrix[user] @ ease.weights, 5, banned)


def test_equal_scores_are_decided_by_row_however_many_there_are() -> None:
    # Items 0 to 3 have users in common; the others were met by nobody and score 0 alike.
    interactions = Interactions(np.array([0, 0, 1, 1, 1]), np.array([0, 1, 0, 1, 3]), None, 60)
    ease = Ease(interactions, regularization=1.0)
    histories = make_ragged([[0], [3], [50]])
    lists = ease.top(histories, 5, histories)
    assert lists[0].tolist()[0] == 1
    for user in range(3):
        scores = ease.weights[histories[user][0]]
        assert lists[user].tolist() == expected_top(scores, 5, histories[user].tolist())
    assert lists[2].tolist() == [0, 1, 2, 3, 4]


@given(
    seed=st.integers(0, 2**16),
    k=st.integers(1, 13),
    neighbours=st.integers(1, 12),
    shrinkage=st.sampled_from([0.0, 2.5]),
)
def test_item_knn_equals_a_slow_version(
    seed: int, k: int, neighbours: int, shrinkage: float
) -> None:
    matrix = make_matrix(8, 7, seed)
    near = np.zeros((7, 7))
    for i in range(7):
        for j in range(7):
            both = matrix[:, i] @ matrix[:, j]
            if i != j and both:
                norm = math.sqrt(matrix[:, i].sum() * matrix[:, j].sum())
                near[i, j] = both / (norm + shrinkage)
        kept = sorted(range(7), key=lambda j: (-near[i, j], j))[:neighbours]
        near[i, [j for j in range(7) if j not in kept]] = 0
    histories = make_histories(matrix)
    knn = ItemKnn(make_interactions(matrix), num_neighbours=neighbours, shrinkage=shrinkage)
    lists = knn.top(histories, k, histories)
    for user in range(8):
        scores = np.round(matrix[user] @ near, 12)  # equal sums may differ in their last bit
        allowed = [i for i in range(7) if scores[i] > 0 and not matrix[user, i]]
        assert set(lists[user].tolist()) <= set(allowed)
        assert len(lists[user]) == min(k, len(allowed))
        found = scores[lists[user]].tolist()
        assert found == sorted(scores[allowed].tolist(), reverse=True)[:k]
    every, even = knn.top(histories, 7, histories), np.arange(0, 7, 2)
    some = knn.top(histories, k, histories, even)
    for user in range(8):
        assert some[user].tolist() == [row for row in every[user] if row % 2 == 0][:k]


def test_item_knn_equals_the_value_worked_by_hand() -> None:
    # Item 0 with users a, b, c; item 1 with a, b; item 2 with c: cosines 2/sqrt(6), 1/sqrt(3), 0.
    matrix = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 1]])
    knn = ItemKnn(make_interactions(matrix), num_neighbours=2, shrinkage=1)
    expected = [[0, 2 / (6**0.5 + 1), 1 / (3**0.5 + 1)], [2 / (6**0.5 + 1), 0, 0]]
    np.testing.assert_allclose(knn.similarities.toarray()[:2], expected, rtol=1e-15)


def test_counts_only_events_of_the_window_before_the_latest_one() -> None:
    matrix = np.array([[1, 1], [1, 0], [0, 1]])  # events: (0, 0), (0, 1), (1, 0), (2, 1)
    times = np.array([0, 8 * DAY, 3 * DAY, 10 * DAY])
    interactions = make_interactions(matrix, times)
    assert recent_counts(interactions, 2.5).tolist() == [0, 2]
    assert recent_counts(interactions, 7).tolist() == [0, 2]  # exactly 7 days ago is out
    assert recent_counts(interactions, 7.5).tolist() == [1, 2]
    with pytest.raises(ArgumentError, match="`interactions` must have times"):
        recent_counts(make_interactions(matrix), 7)
    with pytest.raises(ArgumentError, match="`days` must be above 0"):
        recent_counts(interactions, 0)


def test_chooses_the_first_of_the_best_settings() -> None:
    def make_option(x: int) -> Option[float]:
        return Option({"x": x}, lambda _: float(x % 3))

    options = [make_option(x) for x in (1, 2, 5, 3)]
    interactions = make_interactions(make_matrix())
    chosen = choose(options, interactions, lambda ranker: ranker)
    assert chosen.option.settings == {"x": 2}
    assert chosen.attempts[1] == Attempt({"x": 2}, 2.0)
    assert len(chosen.attempts) == 4
    unscored = choose(options, interactions, None)
    assert (unscored.option.settings, unscored.attempts) == ({"x": 1}, ())
    with pytest.raises(ArgumentError, match="`options` must hold at least one"):
        choose([], interactions, None)
