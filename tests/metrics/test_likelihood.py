"""The likelihood under a softmax over the catalogue: a slow version, values by hand, extremes."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, Ragged, ShapeError
from recsys.metrics import log_likelihood, perplexity


def make_vectors(size: int, dim: int, seed: int, dtype: Any = np.float32) -> NDArray[Any]:
    return np.random.default_rng(seed).normal(size=(size, dim)).astype(dtype)


def lists_of(*lists: list[int]) -> Ragged:
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return Ragged(offsets, np.array([row for one in lists for row in one], np.int64))


def one_each(rows: NDArray[np.int64]) -> Ragged:
    return Ragged(np.arange(len(rows) + 1), rows)


def slow(
    queries: NDArray[Any], candidates: NDArray[Any], chosen: Ragged, temperature: float
) -> list[float]:
    """Sum over the catalogue in float64, one event at a time."""
    values = []
    for place, query in enumerate(queries.astype(float)):
        for row in chosen[place]:
            logits = [float(query @ one) / temperature for one in candidates.astype(float)]
            top = max(logits)
            total = math.fsum(math.exp(logit - top) for logit in logits)
            values.append(logits[row] - top - math.log(total))
    return values


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2e-5), (np.float64, 1e-12)])
def test_equals_a_slow_sum_over_the_catalogue(dtype: Any, tolerance: float) -> None:
    queries, candidates = make_vectors(4, 5, 0, dtype), make_vectors(30, 5, 1, dtype)
    chosen = lists_of([3, 29, 3], [], [0], [7, 8])  # one twice, and a query that chose nothing
    values = log_likelihood(queries, candidates, chosen, temperature=0.1)  # scores up to about 70
    expected = slow(queries, candidates, chosen, 0.1)
    np.testing.assert_allclose(values, expected, rtol=0, atol=tolerance)
    assert values[0] == values[2]


def test_blocks_of_queries_and_of_candidates_make_no_difference() -> None:
    queries, candidates = make_vectors(300, 3, 0, np.float64), make_vectors(9_000, 3, 1, np.float64)
    rows = np.random.default_rng(2).integers(0, 9_000, 300)
    logits = queries @ candidates.T  # [Q, C], at once
    expected = logits[np.arange(300), rows] - np.logaddexp.reduce(logits, axis=1)
    values = log_likelihood(queries, candidates, one_each(rows), temperature=1.0)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


def test_equals_the_value_worked_by_hand() -> None:
    # Inner products 1, 0, -1 at temperature 1/2 are the logits 2, 0, -2. e^2 + 1 + e^-2 =
    # 8.524391, of which the log is 2.142931; so log P is -0.142931, -2.142931, -4.142931.
    candidates = np.array([[1.0], [0.0], [-1.0]], np.float32)
    chosen = lists_of([0, 1, 2])
    values = log_likelihood(np.ones((1, 1), np.float32), candidates, chosen, temperature=0.5)
    np.testing.assert_allclose(values, [-0.142931, -2.142931, -4.142931], rtol=0, atol=1e-6)


@pytest.mark.parametrize("size", [1, 7, 1_682, 20_000])
def test_a_model_that_knows_nothing_has_the_catalogues_size_as_perplexity(size: int) -> None:
    queries, candidates = np.ones((2, 4), np.float32), np.ones((size, 4), np.float32)
    [first, last] = log_likelihood(queries, candidates, lists_of([0], [size - 1]), temperature=0.5)
    assert first == last == pytest.approx(-math.log(size), rel=1e-15, abs=1e-15)
    assert perplexity(first) == pytest.approx(size, rel=1e-13)


@given(seed=st.integers(0, 2**16), temperature=st.floats(0.01, 10))
def test_probabilities_over_the_catalogue_sum_to_1(seed: int, temperature: float) -> None:
    candidates = make_vectors(12, 3, seed)
    everything = lists_of(list(range(12)))
    query = make_vectors(1, 3, seed + 1)
    values = log_likelihood(query, candidates, everything, temperature=temperature)
    assert np.exp(values).sum() == pytest.approx(1, abs=1e-6)
    assert (values <= 0).all()


@given(shift=st.integers(-500, 500), seed=st.integers(0, 2**16))
def test_a_number_added_to_all_scores_of_a_query_changes_nothing(shift: int, seed: int) -> None:
    queries, candidates = make_vectors(2, 3, seed), make_vectors(9, 3, seed + 1)
    chosen = lists_of([4], [0, 8])
    expected = log_likelihood(queries, candidates, chosen, temperature=1.0)
    queries = np.concatenate([queries, np.full((2, 1), shift, np.float32)], axis=1)
    candidates = np.concatenate([candidates, np.ones((9, 1), np.float32)], axis=1)
    values = log_likelihood(queries, candidates, chosen, temperature=1.0)
    np.testing.assert_allclose(values, expected, rtol=0, atol=2e-4)  # float32 at 500


def test_scores_far_apart_neither_overflow_nor_vanish() -> None:
    candidates = np.array([[-1.0], [1.0]], np.float32)
    query = np.full((1, 1), 100, np.float32)
    [low, high] = log_likelihood(query, candidates, lists_of([0, 1]), temperature=0.01)
    assert (low, high) == (-20_000, 0)


def test_what_is_no_candidate_has_no_likelihood_and_changes_nothing() -> None:
    queries, candidates = make_vectors(2, 3, 0), make_vectors(5, 3, 1)
    values = log_likelihood(queries, candidates, lists_of([5, 2], [9]), temperature=1.0)
    [alone] = log_likelihood(queries[:1], candidates, lists_of([2]), temperature=1.0)
    assert np.isnan(values).tolist() == [True, False, True]
    assert values[1] == pytest.approx(alone, rel=1e-6)  # one query and two are multiplied apart


def test_of_several_interests_the_largest_score_counts_worked_by_hand() -> None:
    # Interests (2, 0) and (0, 1) score three candidates 2, 0, -2 and 0, 1, -1: the largest are
    # 2, 1, -1. At temperature 1, e^2 + e + e^-1 = 10.475217, of which the log is 2.349012.
    candidates = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], np.float32)
    query = np.array([[[2.0, 0.0], [0.0, 1.0]]], np.float32)
    values = log_likelihood(query, candidates, lists_of([0, 1, 2]), temperature=1.0)
    np.testing.assert_allclose(values, [-0.349012, -1.349012, -3.349012], rtol=0, atol=1e-6)


def test_several_interests_equal_a_softmax_over_the_largest_scores() -> None:
    rng = np.random.default_rng(0)
    queries, candidates = rng.normal(size=(300, 3, 4)), make_vectors(9_000, 4, 1, np.float64)
    rows = rng.integers(0, 9_000, 300)
    logits = np.stack([queries[:, i] @ candidates.T for i in range(3)]).max(axis=0) / 0.5  # [Q, C]
    expected = logits[np.arange(300), rows] - np.logaddexp.reduce(logits, axis=1)
    values = log_likelihood(queries, candidates, one_each(rows), temperature=0.5)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


def test_one_interest_is_a_plain_query() -> None:
    queries, candidates = make_vectors(300, 5, 0), make_vectors(500, 5, 1)
    rows = np.random.default_rng(2).integers(0, 500, 300)
    plain, alone = (
        log_likelihood(given, candidates, one_each(rows), temperature=0.3)
        for given in (queries, queries[:, None])
    )
    assert np.array_equal(plain, alone)


def test_without_a_query_or_a_choice_there_is_nothing() -> None:
    candidates = make_vectors(5, 3, 1)
    nobody = log_likelihood(candidates[:0], candidates, Ragged.empty(0), temperature=1.0)
    nothing = log_likelihood(candidates[:2], candidates, Ragged.empty(2), temperature=1.0)
    assert nobody.shape == nothing.shape == (0,)


def test_the_perplexity_is_the_exponential_and_infinite_beyond_a_float() -> None:
    assert perplexity(0.0) == 1.0
    assert perplexity(-math.log(8.0)) == pytest.approx(8.0, rel=1e-15)
    assert perplexity(-709.0) == pytest.approx(8.2184e307, rel=1e-4)
    assert perplexity(-710.0) == math.inf
    assert math.isnan(perplexity(math.nan))


def test_names_the_argument_that_does_not_fit() -> None:
    queries, candidates = make_vectors(2, 3, 0), make_vectors(5, 3, 1)
    with pytest.raises(ShapeError, match="`candidate_embeddings` must have shape"):
        log_likelihood(queries, candidates[:, :2], Ragged.empty(2), temperature=1.0)
    with pytest.raises(ShapeError, match="must hold at least one vector a query, got none"):
        log_likelihood(queries[:, None][:, :0], candidates, Ragged.empty(2), temperature=1.0)
    with pytest.raises(ShapeError, match="`chosen` must have 2 lists, got 3"):
        log_likelihood(queries, candidates, Ragged.empty(3), temperature=1.0)
    with pytest.raises(ArgumentError, match="`temperature` must be above 0, got 0"):
        log_likelihood(queries, candidates, Ragged.empty(2), temperature=0.0)
    with pytest.raises(ArgumentError, match="`query_embeddings` must be float32 or float64"):
        log_likelihood(queries.astype(np.float16), candidates, Ragged.empty(2), temperature=1.0)
