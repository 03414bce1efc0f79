"""The score of a pair: its order of additions, the keys that sort it, no copy of the catalogue."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recsys.index import ExactIndex, FaissIndex, Hits, IndexSettings, read_vectors, write_vectors
from recsys.index.scoring import (
    inner_products,
    rows_of_keys,
    scores_of_keys,
    sort_keys,
    take_hits,
    take_rows,
)


def make_doubles(*shape: int, seed: int, offset: int = 0) -> NDArray[np.float64]:
    """C-contiguous numbers that begin some places into their memory."""
    numbers = np.random.default_rng(seed).standard_normal(shape)
    memory = np.empty(numbers.size + 16)
    placed = memory[offset : offset + numbers.size].reshape(shape)
    placed[...] = numbers
    return placed


@settings(max_examples=100, deadline=None)
@given(
    dim=st.integers(1, 80) | st.sampled_from([127, 128, 300, 1000, 4099]),
    num_queries=st.integers(1, 6),
    fetched=st.integers(1, 20),
    offset=st.integers(0, 8),
    seed=st.integers(0, 2**16),
)
def test_an_inner_product_is_the_same_alone_among_others_and_anywhere_in_memory(
    dim: int, num_queries: int, fetched: int, offset: int, seed: int
) -> None:
    asked = make_doubles(num_queries, 1, dim, seed=seed)
    found = make_doubles(num_queries, fetched, dim, seed=seed + 1)
    together = inner_products(asked, found)
    moved = inner_products(
        make_doubles(num_queries, 1, dim, seed=seed, offset=offset),
        make_doubles(num_queries, fetched, dim, seed=seed + 1, offset=offset // 2),
    )
    assert moved.tobytes() == together.tobytes()
    for query in range(num_queries):
        for place in range(fetched):
            alone = inner_products(asked[query, 0][None].copy(), found[query, place][None].copy())
            assert alone.tobytes() == together[query, place].tobytes()
    slow = (asked * found).sum(axis=2)
    assert np.abs(together - slow).max() < 1e-12 * dim


@given(
    scores=st.lists(
        st.floats(width=32, allow_nan=False, allow_infinity=False)
        | st.sampled_from([0.0, -0.0, 1.0, -1.0]),
        min_size=1,
        max_size=30,
    ),
    seed=st.integers(0, 2**16),
)
def test_keys_sort_by_score_then_row_and_give_both_back(scores: list[float], seed: int) -> None:
    numbers = np.array(scores, np.float32)
    rows = np.random.default_rng(seed).integers(0, 2**32, len(numbers))
    keys = sort_keys(numbers, rows)
    assert np.argsort(keys, kind="stable").tolist() == np.lexsort((rows, -numbers)).tolist()
    assert np.array_equal(rows_of_keys(keys), rows)
    assert scores_of_keys(keys).tobytes() == (numbers + np.float32(0)).tobytes()  # one zero


def test_hits_are_taken_in_any_order() -> None:
    hits = Hits(
        np.array([0, 2, 2, 5]), np.array([4, 1, 7, 8, 9]), np.arange(5, 0, -1).astype(np.float32)
    )
    taken = take_hits(hits, np.array([2, 1, 0]))
    assert [rows.tolist() for rows, _ in taken] == [[7, 8, 9], [], [4, 1]]
    assert [scores.tolist() for _, scores in taken] == [[3, 2, 1], [], [5, 4]]


def test_rows_are_taken_from_any_layout() -> None:
    vectors = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)
    rows = np.array([3, 29, 0, 3])
    for laid in (vectors, np.asfortranarray(vectors), np.repeat(vectors, 2, axis=1)[:, ::2]):
        out = np.empty((4, 4), np.float32)
        assert take_rows(laid, rows, out) is out
        assert np.array_equal(out, vectors[rows])
        assert len(take_rows(laid, np.array([-1]), np.empty((1, 4), np.float32))) == 1


@pytest.mark.parametrize("layout", ["memory map", "column by column", "part of wider ones"])
def test_no_lookup_copies_the_catalogue(layout: str, tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).standard_normal((60_000, 64)).astype(np.float32)  # 15 MB
    index = FaissIndex.build(vectors, IndexSettings(kind="ivf_sq8", num_lists=16, num_probes=2))
    write_vectors(tmp_path / "vectors.npy", vectors)
    laid = {
        "memory map": read_vectors(tmp_path / "vectors.npy"),
        "column by column": np.asfortranarray(vectors),
        "part of wider ones": np.repeat(vectors, 2, axis=1)[:, ::2],
    }[layout]
    index, exact = FaissIndex(laid, index.inner, index.settings), ExactIndex(laid)
    queries, allowed = vectors[:5], np.arange(0, 60_000, 20_000)
    tracemalloc.start()
    try:
        index.search(queries, 100)
        index.search(queries[:, None].repeat(2, axis=1), 100)
        exact.search(queries, 100, allowed=allowed)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < vectors.nbytes / 4
