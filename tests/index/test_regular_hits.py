"""The table of fetched candidates against lists of pairs and a slow loop, however it is blocked."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recsys.index import Hits
from recsys.index import regular_hits as module
from recsys.index.regular_hits import regular_hits
from recsys.index.scoring import make_hits, score_pairs


def make_candidates(num_queries: int, fetched: int, count: int, seed: int) -> NDArray[np.int64]:
    """Distinct rows in every line, and here and there none, which FAISS puts last."""
    rng = np.random.default_rng(seed)
    lines = [rng.permutation(count)[:fetched] for _ in range(num_queries)]
    found = np.array(lines, np.int64).reshape(num_queries, fetched)
    known = rng.integers(0, fetched + 1, num_queries)
    known[rng.random(num_queries) < 0.5] = fetched
    found[np.arange(fetched) >= known[:, None]] = -1
    return found


def of_pairs(
    queries: NDArray[np.float32],
    vectors: NDArray[np.float32],
    candidates: NDArray[np.int64],
    k: int,
    dropped: NDArray[np.bool_] | None,
) -> Hits:
    kept = candidates >= 0
    if dropped is not None:
        kept &= ~dropped
    owners, columns = np.nonzero(kept)
    rows = candidates[owners, columns]
    scores = score_pairs(queries[:, None], vectors, owners, rows)
    return make_hits(owners, rows, scores, k=k, num_queries=len(queries))


def assert_same_bytes(found: Hits, expected: Hits) -> None:
    for one, other in (
        (found.offsets, expected.offsets),
        (found.candidate_rows, expected.candidate_rows),
        (found.scores, expected.scores),
    ):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    num_queries=st.integers(0, 9),
    fetched=st.integers(1, 40),
    dim=st.integers(1, 70),
    k=st.integers(1, 50),
    levels=st.sampled_from([1, 2, 5, 10**6]),
    length=st.sampled_from([1e-30, 1.0, 1e17]),
    dropping=st.sampled_from([None, 0.0, 0.3, 1.0]),
    numbers=st.sampled_from([1, 300, 1 << 16]),
)
def test_equals_the_lists_of_pairs_byte_for_byte(
    seed: int, num_queries: int, fetched: int, dim: int, k: int, levels: int, length: float,
    dropping: float | None, numbers: int,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    # Few levels: many equal scores and equal vectors, and 0 as often as -0.
    numbers_of_vectors = rng.integers(-levels, levels + 1, (60, dim)) / levels / 7
    vectors = (numbers_of_vectors * length).astype(np.float32)
    queries = (rng.integers(-3, 4, (num_queries, dim)) / 3 * length).astype(np.float32)
    candidates = make_candidates(num_queries, fetched, 60, seed)
    dropped = None if dropping is None else rng.random(candidates.shape) < dropping
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_NUMBERS_AT_ONCE", numbers)
        found = regular_hits(queries, vectors, candidates, k, dropped)
    assert_same_bytes(found, of_pairs(queries, vectors, candidates, k, dropped))


def test_equals_a_slow_loop() -> None:
    rng = np.random.default_rng(0)
    # Sums of whole numbers are exact in any order.
    vectors = rng.integers(-2, 3, (50, 6)).astype(np.float32)
    queries = rng.integers(-2, 3, (20, 6)).astype(np.float32)
    candidates = make_candidates(20, 30, 50, seed=1)
    dropped = rng.random(candidates.shape) < 0.3
    hits = regular_hits(queries, vectors, candidates, 7, dropped)
    ties = 0
    for query, (rows, scores) in enumerate(hits):
        may = [
            (-float(queries[query] @ vectors[row]), int(row))
            for row, out in zip(candidates[query], dropped[query], strict=True)
            if row >= 0 and not out
        ]
        best = sorted(may)[:7]
        assert rows.tolist() == [row for _, row in best]
        assert scores.tolist() == [-score for score, _ in best]
        ties += len({score for score, _ in best}) < len(best)
    assert ties > 5


def test_zero_has_one_sign_and_equal_scores_go_by_row() -> None:
    # Scores 0, -0, 2, -0, 2: the products of candidates 1 and 3 are all -0.
    vectors = np.array([[0, 0], [-0.0, -0.0], [1, 1], [-0.0, -0.0], [2, 0]], np.float32)
    lines = np.array([[4, 3, 2, 1, 0]])
    hits = regular_hits(np.ones((1, 2), np.float32), vectors, lines, 4, None)
    assert hits.candidate_rows.tolist() == [2, 4, 0, 1]
    assert hits.scores.tobytes() == np.array([2, 2, 0, 0], np.float32).tobytes()


@pytest.mark.parametrize("dim", [1, 7, 64, 97])
def test_a_line_does_not_depend_on_the_other_lines(dim: int) -> None:
    rng = np.random.default_rng(dim)
    vectors = rng.standard_normal((2000, dim)).astype(np.float32)
    queries = rng.standard_normal((600, dim)).astype(np.float32)
    candidates = make_candidates(600, 50, 2000, seed=2)
    whole = regular_hits(queries, vectors, candidates, 20, None)
    for batch in (1, 7, 512):
        parts = [
            regular_hits(queries[i : i + batch], vectors, candidates[i : i + batch], 20, None)
            for i in range(0, 600, batch)
        ]
        rows = np.concatenate([part.candidate_rows for part in parts])
        assert rows.tobytes() == whole.candidate_rows.tobytes()
        scores = np.concatenate([part.scores for part in parts])
        assert scores.tobytes() == whole.scores.tobytes()
