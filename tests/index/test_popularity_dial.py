"""The popularity dial against values worked by hand and a slow ranking; what it refuses."""

import math
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, Ragged, ShapeError
from recsys.index import ExactIndex, PopularityDial


def make_vectors(count: int, *, dim: int = 6, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, dim), dtype=np.float32)


def make_log_popularity(count: int, *, seed: int = 0) -> NDArray[np.float64]:
    shares = np.random.default_rng(seed).exponential(size=count)
    return np.asarray(np.log(shares / shares.sum()))


def slow_search(
    queries: NDArray[np.float32],
    vectors: NDArray[np.float32],
    log_popularity: NDArray[np.float64],
    *,
    weight: float,
    exclude: list[set[int]],
    k: int,
) -> list[list[int]]:
    """Rank by score - weight * log popularity, then row; both factors are float32, as stored."""
    taken = float(np.float32(weight)) * log_popularity.astype(np.float32).astype(np.float64)
    lists = []
    for query, out in zip(queries, exclude, strict=True):
        scores = (vectors.astype(np.float64) @ query.astype(np.float64) - taken).astype(np.float32)
        order = sorted(range(len(scores)), key=lambda row: (-scores[row], row))
        lists.append([row for row in order if row not in out][:k])
    return lists


def test_gives_the_order_and_the_scores_worked_by_hand() -> None:
    # Scores 1, 0.9, 0.5; shares 0.8, 0.15, 0.05; T = 0.1. With alpha = 1 there is taken away
    # 0.1 * log(share) = -0.0223, -0.1897, -0.2996: 1.0223, 1.0897, 0.7996. With alpha = 4:
    # 1.0893, 1.6588, 1.6983. With alpha = -4: 0.9107, 0.1412, -0.6983.
    vectors = np.array([[1.0], [0.9], [0.5]], np.float32)
    dial = PopularityDial(vectors, np.log([0.8, 0.15, 0.05]), 0.1)
    query = np.ones((1, 1), np.float32)
    expected = {
        1.0: ([1, 0, 2], [1.0897, 1.0223, 0.7996]),
        4.0: ([2, 1, 0], [1.6983, 1.6588, 1.0893]),
        -4.0: ([0, 1, 2], [0.9107, 0.1412, -0.6983]),
    }
    for alpha, (rows, scores) in expected.items():
        hits = dial.search(query, 3, alpha=alpha)
        assert hits.candidate_rows.tolist() == rows
        assert hits.scores.tolist() == pytest.approx(scores, abs=1e-4)


def test_alpha_1_turns_log_probability_into_mutual_information() -> None:
    # Scores are T * log P(c | q); less T * log P(c) they are T * log(P(c | q) / P(c)).
    conditional, shares = np.array([0.6, 0.3, 0.1]), np.array([0.7, 0.2, 0.1])
    vectors = (0.5 * np.log(conditional))[:, None].astype(np.float32)
    dial = PopularityDial(vectors, np.log(shares), 0.5)
    hits = dial.search(np.ones((1, 1), np.float32), 3, alpha=1.0)
    information = [0.5 * math.log(conditional[row] / shares[row]) for row in (1, 2, 0)]
    assert hits.candidate_rows.tolist() == [1, 2, 0]
    assert hits.scores.tolist() == pytest.approx(information, abs=1e-6)


@given(
    seed=st.integers(0, 2**16),
    alpha=st.floats(-10, 10),
    temperature=st.floats(0.01, 2),
    k=st.integers(1, 30),
)
def test_equals_the_slow_ranking_with_filters(
    seed: int, alpha: float, temperature: float, k: int
) -> None:
    vectors, queries = make_vectors(200, seed=seed), make_vectors(5, seed=seed + 1)
    log_popularity = make_log_popularity(200, seed=seed)
    rng = np.random.default_rng(seed)
    exclude = Ragged.from_pairs(rng.integers(0, 5, 300), rng.integers(0, 200, 300), 5)
    dial = PopularityDial(vectors, log_popularity, temperature)
    hits = dial.search(queries, k, alpha=alpha, exclude=exclude)
    barred = [set(exclude[query].tolist()) for query in range(5)]
    weight = alpha * temperature
    slow = slow_search(queries, vectors, log_popularity, weight=weight, exclude=barred, k=k)
    assert [rows.tolist() for rows, _ in hits] == slow


def test_of_several_interests_the_best_one_counts() -> None:
    vectors, interests = make_vectors(200), make_vectors(12, seed=1).reshape(4, 3, 6)
    log_popularity = make_log_popularity(200)
    hits = PopularityDial(vectors, log_popularity, 0.3).search(interests, 7, alpha=1.5)
    scores = np.einsum("bmd,cd->bmc", interests.astype(float), vectors.astype(float)).max(axis=1)
    scores -= 1.5 * 0.3 * log_popularity  # [B, C]
    assert [rows.tolist() for rows, _ in hits] == np.argsort(-scores, axis=1)[:, :7].tolist()
    assert np.allclose(hits.scores, -np.sort(-scores, axis=1)[:, :7].ravel(), atol=1e-5)


def test_only_allowed_candidates_are_given() -> None:
    dial = PopularityDial(make_vectors(50), make_log_popularity(50), 0.3)
    hits = dial.search(make_vectors(4, seed=1), 9, alpha=0.5, allowed=np.array([3, 8, 40]))
    assert [sorted(rows.tolist()) for rows, _ in hits] == [[3, 8, 40]] * 4


def test_alpha_0_gives_the_plain_lists() -> None:
    vectors, queries = make_vectors(300), make_vectors(20, seed=1)
    plain = ExactIndex(vectors).search(queries, 10)
    hits = PopularityDial(vectors, make_log_popularity(300), 0.1).search(queries, 10, alpha=0.0)
    assert np.array_equal(hits.candidate_rows, plain.candidate_rows)
    assert np.allclose(hits.scores, plain.scores, rtol=1e-6)


def test_results_do_not_depend_on_batches() -> None:
    queries = make_vectors(40, seed=1)
    dial = PopularityDial(make_vectors(500), make_log_popularity(500), 0.2)
    whole = dial.search(queries, 10, alpha=0.7)
    for query in range(len(queries)):
        alone = dial.search(queries[query : query + 1], 10, alpha=0.7)
        assert np.array_equal(alone.candidate_rows, whole[query][0])
        assert np.array_equal(alone.scores, whole[query][1])


def test_the_widened_vectors_are_made_once_also_by_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[ExactIndex] = []

    class Counted(ExactIndex):
        def __init__(self, vectors: NDArray[np.float32]) -> None:
            super().__init__(vectors)
            made.append(self)

    monkeypatch.setattr("recsys.index.popularity_dial.ExactIndex", Counted)
    dial = PopularityDial(make_vectors(20_000), make_log_popularity(20_000), 0.2)
    assert made == []  # nothing is copied for those who never turn it

    def search(alpha: float) -> None:
        dial.search(make_vectors(3, seed=1), 5, alpha=alpha)

    threads = [threading.Thread(target=search, args=(alpha,)) for alpha in (0.1, 0.2, 0.3, 0.4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.dim for one in made] == [7]


@pytest.mark.parametrize("alpha", [10.5, -11.0, float("nan"), float("inf")])
def test_an_alpha_out_of_range_is_refused(alpha: float) -> None:
    dial = PopularityDial(make_vectors(5), make_log_popularity(5), 0.2)
    with pytest.raises(ArgumentError, match="`alpha` must lie between -10 and 10, got"):
        dial.search(make_vectors(1), 2, alpha=alpha)


def test_wrong_popularity_and_temperature_are_refused() -> None:
    with pytest.raises(ShapeError, match="`log_popularity` must have shape"):
        PopularityDial(make_vectors(5), make_log_popularity(4), 0.2)
    with pytest.raises(ArgumentError, match="`temperature` must be above 0"):
        PopularityDial(make_vectors(5), make_log_popularity(5), 0.0)
