"""Alias tables: the probabilities they realise, the draws they give, what they refuse."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recsys.foundations import ArgumentError, ShapeError, make_generator
from recsys.sampling import AliasTable

WEIGHTS = st.lists(st.floats(0, 1e6), min_size=1, max_size=60).filter(lambda w: sum(w) > 1e-3)


@given(weights=WEIGHTS)
def test_realises_the_weights(weights: list[float]) -> None:
    expected = np.array(weights) / np.sum(weights)
    actual = AliasTable(np.array(weights)).draw_probabilities().numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("exponent", [1.2, 1.5, 2.5])
def test_realises_a_long_tail_of_a_hundred_thousand(exponent: float) -> None:
    weights = np.random.default_rng(0).zipf(exponent, 100_000).astype(np.float64)
    actual = AliasTable(weights).draw_probabilities().numpy()
    np.testing.assert_allclose(actual, weights / weights.sum(), rtol=1e-7)


def test_realises_equal_weights_whatever_their_sum_is_rounded_to() -> None:
    # From 14 outcomes on, every one of them can come out above the mean of all.
    for size in range(1, 300):
        weights = np.full(size, 1 / size)
        actual = AliasTable(weights / weights.sum()).draw_probabilities().numpy()
        np.testing.assert_allclose(actual, 1 / size, rtol=1e-12)


def test_draws_every_outcome_as_often_as_stated() -> None:
    weights, num_draws = np.array([5.0, 0, 1, 3, 0, 0.5, 10]), 200_000
    drawn = AliasTable(weights).draw(num_draws, make_generator(0, "alias"))
    counts = np.bincount(drawn.numpy(), minlength=len(weights))
    expected = num_draws * weights / weights.sum()
    assert counts[weights == 0].sum() == 0
    seen = weights > 0
    chi_square = ((counts - expected)[seen] ** 2 / expected[seen]).sum()
    assert chi_square < 18.47  # 4 degrees of freedom, exceeded once in 1000 seeds


@pytest.mark.slow  # builds a table of 16.8 million
def test_reaches_past_the_limit_of_torch_multinomial() -> None:
    size = 2**24 + 2
    weights = np.zeros(size)
    weights[[0, size - 1]] = [1, 3]
    drawn = AliasTable(weights).draw(4_000, make_generator(0, "large"))
    assert set(drawn.tolist()) == {0, size - 1}
    assert abs((drawn == 0).double().mean().item() - 0.25) < 0.03  # 4.4 standard deviations


def test_draws_the_same_from_the_same_seed() -> None:
    table = AliasTable(np.arange(1.0, 50))
    first, again = (table.draw(100, make_generator(7)) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, table.draw(100, make_generator(8)))


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0, -2.0], "finite and not negative, got -2.0 at row 1"),
        ([1.0, float("nan")], "got nan at row 1"),
        ([float("inf")], "got inf at row 0"),
        ([0.0, 0.0], "must hold one value above 0"),
        ([], "must hold one value above 0"),
    ],
)
def test_refuses_weights_that_are_none(weights: list[float], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        AliasTable(np.array(weights))


def test_refuses_a_table_of_weights() -> None:
    with pytest.raises(ShapeError, match="`weights` must have shape"):
        AliasTable(np.ones((2, 2)))
