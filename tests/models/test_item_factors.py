"""Factors of items: each side solves its equations, seeds, ids that only need to differ."""

import importlib.util
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from recsys.foundations import ArgumentError, ShapeError
from recsys.models import ItemFactors, item_factors

REGULARIZATION, UNOBSERVED = 0.02, 0.1


def make_events(num_users: int = 30, num_items: int = 12) -> NDArray[np.int64]:
    """Draw who met what: [2, M], some twice; users and items of two kinds, item 0 for no one."""
    rng = np.random.default_rng(0)
    likes = (np.arange(num_users)[:, None] + np.arange(num_items)) % 2 == 0
    there = rng.random((num_users, num_items)) < np.where(likes, 0.6, 0.1)
    there[:, 0] = False
    pairs = np.argwhere(there).T
    return np.concatenate([pairs, pairs[:, :7]], axis=1)


def fit(events: NDArray[np.int64], num_items: int = 12, **changes: Any) -> NDArray[np.float32]:
    settings: dict[str, Any] = {
        "regularization": REGULARIZATION,
        "unobserved": UNOBSERVED,
        "iterations": 100,
    }
    of_factors: dict[str, Any] = {"dim": 4, "generator": torch.Generator().manual_seed(0)}
    of_factors |= {name: changes.pop(name) for name in of_factors.keys() & changes.keys()}
    factors = ItemFactors(events[0], events[1], num_items=num_items, **of_factors)
    return factors.fit(**settings | changes).numpy()


def solve(matrix: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve for the rows of one side exactly, one after the other."""
    dim, solved = others.shape[1], []
    for row in matrix:
        frequency = row.sum() + UNOBSERVED * len(others)
        system = UNOBSERVED * others.T @ others + REGULARIZATION * frequency * np.eye(dim)
        for entry, vector in zip(row, others, strict=True):
            system += entry * np.outer(vector, vector)
        solved.append(np.linalg.solve(system, row @ others))
    return np.array(solved)


def matrix_of(events: NDArray[np.int64], num_items: int = 12) -> NDArray[np.float64]:
    matrix = np.zeros((events[0].max() + 1, num_items))
    matrix[events[0], events[1]] = 1
    return matrix


def test_the_factors_solve_the_equations_of_both_sides() -> None:
    events = make_events()
    factors, matrix = fit(events).astype(np.float64), matrix_of(events)
    again = solve(matrix.T, solve(matrix, factors))
    np.testing.assert_allclose(factors, again, atol=1e-4)
    assert np.abs(factors[1:]).max() > 0.1
    assert not factors[0].any()


def test_repeats_and_the_numbers_of_users_do_not_matter() -> None:
    events = make_events()
    once = np.unique(events, axis=1)
    factors = fit(events, iterations=3)
    np.testing.assert_array_equal(fit(once, iterations=3), factors)
    np.testing.assert_array_equal(fit(once * np.array([[10], [1]]), iterations=3), factors)


def test_blocks_of_other_sizes_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    factors = fit(make_events(), iterations=5)
    monkeypatch.setattr("recsys.models.item_factors._NUMBERS_AT_ONCE", 36)
    np.testing.assert_allclose(fit(make_events(), iterations=5), factors, atol=1e-5)


def test_the_seed_decides_the_factors() -> None:
    factors = fit(make_events(), iterations=2)
    np.testing.assert_array_equal(fit(make_events(), iterations=2), factors)
    other = fit(make_events(), iterations=2, generator=torch.Generator().manual_seed(1))
    assert not np.allclose(other, factors)


def test_a_fit_begins_anew_whatever_was_fitted_before() -> None:
    events = make_events()
    turns: list[None] = []
    factors = ItemFactors(
        events[0], events[1], num_items=12, dim=4, generator=torch.Generator().manual_seed(0)
    )
    for strength in (0.5, REGULARIZATION):
        fitted = factors.fit(
            regularization=strength,
            unobserved=UNOBSERVED,
            iterations=3,
            on_turn=lambda: turns.append(None),
        )
    np.testing.assert_array_equal(fitted, fit(events, iterations=3))
    assert len(turns) == 6


def test_a_very_long_row_is_solved_by_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    events = make_events()
    whole = fit(events, iterations=3)
    monkeypatch.setattr(item_factors, "_MOST_NUMBERS", 3 * 4)  # 3 entries of 4 factors
    pieces = fit(events, iterations=3)
    np.testing.assert_allclose(pieces, whole, rtol=0, atol=1e-5)
    assert not np.array_equal(pieces, whole)  # sums in another order


def test_no_events_give_zeros() -> None:
    assert not fit(np.zeros((2, 0), dtype=np.int64)).any()


@pytest.mark.skipif(importlib.util.find_spec("irspack") is None, reason="needs irspack")
def test_the_scores_are_those_of_irspack() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from irspack.recommenders.ials import IALSRecommender

    events = make_events()
    matrix = matrix_of(events)
    package = IALSRecommender(
        csr_matrix(matrix.astype(np.float32)),
        n_components=4,
        alpha0=UNOBSERVED,
        reg=REGULARIZATION,
        n_threads=1,
    )
    package.start_learning()
    for _ in range(100):
        package.run_epoch()
    theirs = np.asarray(package.get_item_embedding()).astype(np.float64)
    ours = fit(events).astype(np.float64)
    expected = solve(matrix, theirs) @ theirs.T
    np.testing.assert_allclose(solve(matrix, ours) @ ours.T, expected, atol=0.01)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ArgumentError, match="dim"):
        fit(make_events(), dim=0)
    for name in ("regularization", "unobserved", "iterations"):
        with pytest.raises(ArgumentError, match=name):
            fit(make_events(), **{name: 0})
    with pytest.raises(ShapeError, match="items"):
        ItemFactors(
            np.zeros(2, np.int64),
            np.zeros(3, np.int64),
            num_items=3,
            dim=2,
            generator=torch.Generator(),
        )
