"""Item vectors worked by hand, and neighbours by content against a slow version."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from recsys.baselines import ContentKnn, item_vectors
from recsys.data import FeatureOptions, FeatureSchema, FeatureTable
from recsys.foundations import Ragged


def make_features(options: dict[str, FeatureOptions] | None = None, **columns: Any) -> FeatureTable:
    table = pa.table(columns)
    named = options or {name: FeatureOptions() for name in columns}
    return FeatureSchema.fit(table, named).encode(table)


def make_ragged(lists: list[list[int]]) -> Ragged:
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return Ragged(offsets, np.array([row for one in lists for row in one], np.int64))


def test_item_vectors_worked_by_hand() -> None:
    # Of 4 items "a" stands on 2, weight ln 2; "b" on 1, weight ln 4 = 2 ln 2; "all" on every one,
    # weight 0; the colour red on 2, blue on 1. Item 3 has nothing that others lack.
    features = make_features(
        tags=[["a", "all"], ["a", "b", "all"], ["all"], ["all"]],
        colour=["red", None, "red", None],
    )
    vectors = item_vectors(features, 4).toarray()
    cosines = vectors @ vectors.T
    # item 0: a and red, (1, 1); item 1: a and b, (1, 2); item 2: red.
    expected = np.array(
        [
            [1, 1 / math.sqrt(10), 1 / math.sqrt(2), 0],
            [1 / math.sqrt(10), 1, 0, 0],
            [1 / math.sqrt(2), 0, 1, 0],
            [0, 0, 0, 0],
        ]
    )
    np.testing.assert_allclose(cosines, expected, rtol=0, atol=1e-12)


def test_numbers_are_alike_within_a_quantile_and_missing_ones_like_nothing() -> None:
    years = [*range(64), None]
    vectors = item_vectors(make_features(year=pa.array(years, pa.float64())), 65).toarray()
    alike = (vectors @ vectors.T > 0.5).sum(axis=1)
    assert set(alike[:64]) <= {3, 4, 5}  # 64 numbers in 16 quantiles
    assert alike.sum() - alike[64] >= 16 * 4 * 4 - 8
    assert not vectors[64].any()
    assert (
        not item_vectors(make_features(year=pa.array([None] * 3, pa.float64())), 3).toarray().any()
    )


def test_texts_are_alike_by_their_words_and_a_repeated_word_counts_once() -> None:
    titles = ["red metal lantern", "red red metal lantern", "blue paper bag", ""]
    features = make_features({"title": FeatureOptions(kind="text")}, title=titles)
    vectors = item_vectors(features, 4).toarray()
    cosines = vectors @ vectors.T
    assert cosines[0, 1] > 0.8
    assert cosines[0, 2] < 0.1
    assert not vectors[3].any()


def test_given_vectors_stand_beside_the_tokens_with_the_same_length() -> None:
    given_vectors = pa.array([[3.0, 4.0], [6.0, 8.0], [0.0, 0.0]], pa.list_(pa.float32(), 2))
    features = make_features(embedding=given_vectors, kind=["x", "y", "y"])
    # kind: weights ln 3 and ln 1.5, the mean length is m = (ln 3 + 2 ln 1.5) / 3.
    m = (math.log(3) + 2 * math.log(1.5)) / 3
    raw = np.array(
        [
            [math.log(3), 0, 0.6 * m, 0.8 * m],
            [0, math.log(1.5), 0.6 * m, 0.8 * m],
            [0, math.log(1.5), 0, 0],
        ]
    )
    expected = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    vectors = item_vectors(features, 3).toarray()
    np.testing.assert_allclose(vectors @ vectors.T, expected @ expected.T, rtol=0, atol=1e-7)
    alone = item_vectors(make_features(embedding=given_vectors), 3).toarray()
    np.testing.assert_allclose(alone @ alone.T, [[1, 1, 0], [1, 1, 0], [0, 0, 0]], atol=1e-7)


def test_rows_that_are_no_candidates_change_nothing() -> None:
    tags = [["a"], ["a", "b"], ["b"], ["a", "b"]]
    few = item_vectors(make_features(tags=tags[:3]), 3).toarray()
    more = item_vectors(make_features(tags=tags), 3).toarray()
    np.testing.assert_allclose(more @ more.T, few @ few.T, rtol=0, atol=1e-12)


@given(
    seed=st.integers(0, 2**16),
    lists=st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=4),
    decay=st.sampled_from([1.0, 0.5]),
    k=st.integers(1, 11),
    part=st.none() | st.sets(st.integers(0, 9)),
)
def test_equals_a_slow_version(
    seed: int, lists: list[list[int]], decay: float, k: int, part: set[int] | None
) -> None:
    rng = np.random.default_rng(seed)
    tags = [[f"t{tag}" for tag in np.flatnonzero(rng.random(6) < 0.4)] for _ in range(10)]
    vectors = item_vectors(make_features(tags=pa.array(tags, pa.list_(pa.string()))), 10)
    near = (vectors @ vectors.T).toarray()
    histories = make_ragged(lists)
    allowed = None if part is None else np.array(sorted(part), np.int64)
    found = ContentKnn(vectors, decay=decay).top(histories, k, histories, allowed)
    for user, history in enumerate(lists):
        scores = np.zeros(10)
        for age, item in enumerate(reversed(history)):
            scores += decay**age * near[item]
        scores = np.round(scores, 9)  # equal sums may differ in their last bits
        possible = [i for i in range(10) if scores[i] > 0 and i not in history]
        possible = [i for i in possible if part is None or i in part]
        got = found[user].tolist()
        assert len(got) == len(set(got)) == min(k, len(possible))
        assert set(got) <= set(possible)
        best = sorted(scores[possible].tolist(), reverse=True)[:k]
        assert scores[got].tolist() == best
