"""Implicit ALS: its factors at the minimum, new users, and what is said where it is absent."""

import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from recsys.baselines import Ials, Interactions, ials_is_missing
from recsys.foundations import ArgumentError, Ragged

SETTINGS = {"dim": 4, "regularization": 0.01, "unobserved_weight": 0.2, "iterations": 60}


def make_matrix(num_users: int = 40, num_items: int = 12) -> NDArray[np.int64]:
    """Two groups of users, each with most of its own half of the items."""
    rng = np.random.default_rng(0)
    own = (np.arange(num_users)[:, None] % 2) == (np.arange(num_items)[None, :] % 2)
    return (rng.random((num_users, num_items)) < np.where(own, 0.7, 0.05)).astype(np.int64)


def fit(matrix: NDArray[np.int64], **changes: float) -> Ials:
    users, items = np.nonzero(matrix)
    interactions = Interactions(users, items, None, matrix.shape[1])
    return Ials(interactions, num_threads=1, **SETTINGS | changes)  # type: ignore[arg-type]


def histories_of(matrix: NDArray[np.int64]) -> Ragged:
    users, items = np.nonzero(matrix)
    return Ragged.from_pairs(users, items, len(matrix))


def slow_factors(matrix: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Alternate exact solutions of the stated objective from a random start."""
    rng = np.random.default_rng(1)
    weight, strength = SETTINGS["unobserved_weight"], SETTINGS["regularization"]
    sides = [rng.normal(size=(size, 4)) * 0.3 for size in matrix.shape]
    for step in range(400):
        fixed, table = sides[1 - step % 2], matrix if step % 2 == 0 else matrix.T
        gram = weight * fixed.T @ fixed
        for row, had in enumerate(table):
            mine = fixed[had > 0]
            frequency = had.sum() + weight * len(fixed)
            system = gram + mine.T @ mine + strength * frequency * np.eye(4)
            sides[step % 2][row] = np.linalg.solve(system, mine.sum(axis=0))
    return sides[0], sides[1]


def test_ranks_like_exact_alternation_of_the_stated_objective() -> None:
    matrix = make_matrix()
    users, items = slow_factors(matrix)
    expected = users @ items.T
    ials, histories = fit(matrix), histories_of(matrix)
    found = ials.scores(histories)
    # Both stop at a minimum; factors may be turned, scores may not.
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.02)


def test_a_user_who_was_not_there_is_ranked_by_the_history_alone() -> None:
    matrix = make_matrix()
    ials = fit(matrix)
    histories = Ragged(np.array([0, 3, 3, 6]), np.array([0, 4, 8, 1, 7, 9]))
    lists = ials.top(histories, 2, histories)
    assert {int(row) % 2 for row in lists[0]} == {0}
    assert {int(row) % 2 for row in lists[2]} == {1}
    assert not set(lists[0].tolist()) & {0, 4, 8}
    assert lists[1].tolist() == []  # nothing is known
    some = ials.top(histories, 12, histories, np.array([1, 2, 3]))
    assert sorted(some[0].tolist()) == [1, 2, 3]
    assert some[0].tolist()[0] == 2


def test_the_same_seed_gives_the_same_lists() -> None:
    matrix = make_matrix()
    histories = histories_of(matrix)
    first, second = (fit(matrix, iterations=3).top(histories, 5, histories) for _ in range(2))
    assert first.rows.tolist() == second.rows.tolist()


@pytest.mark.parametrize("name", ["dim", "regularization", "unobserved_weight", "iterations"])
def test_refuses_settings_that_are_not_above_0(name: str) -> None:
    with pytest.raises(ArgumentError, match=f"`{name}` must be above 0, got 0"):
        fit(make_matrix(), **{name: 0})


def test_says_what_to_install_where_the_package_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ials_is_missing() is None
    monkeypatch.setitem(sys.modules, "irspack", None)
    assert ials_is_missing() == "it needs irspack: pip install 'recsys-retrieval[baselines]'"
