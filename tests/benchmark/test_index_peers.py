"""Each peer against brute force, set for a target, and left out where it cannot meet it."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from recsys.benchmark.index_asked import AskedQueries
from recsys.benchmark.index_peer import Peer, set_peer
from recsys.benchmark.index_peer_scann import scann_peers
from recsys.benchmark.index_peers_faiss import faiss_peers
from recsys.benchmark.index_peers_graphs import hnswlib_peers, usearch_peers
from recsys.foundations import Ragged, held_threads

Named = Iterator[tuple[str, Callable[[], Peer]]]
K = 10


def make_vectors(count: int, *, seed: int = 0) -> NDArray[np.float32]:
    centres = np.random.default_rng(7).standard_normal((20, 16))
    rng = np.random.default_rng(seed)
    points = centres[rng.integers(0, 20, count)] + 0.5 * rng.standard_normal((count, 16))
    unit: NDArray[np.float32] = points / np.linalg.norm(points, axis=1, keepdims=True)
    return unit.astype(np.float32)


def make_asked(vectors: NDArray[np.float32], *, seed: int) -> AskedQueries:
    queries = make_vectors(80, seed=seed)
    scores = queries.astype(np.float64) @ vectors.T.astype(np.float64)
    best = np.argsort(-scores, axis=1)[:, :K]
    return AskedQueries(queries, Ragged(np.arange(81) * K, best.reshape(-1)), K, 32)


def check_peers(named: Named, vectors: NDArray[np.float32]) -> list[str]:
    """Set each peer on some queries, then compare with brute force on others."""
    seen = []
    for name, make in named:
        peer = make()
        chosen = set_peer(peer, make_asked(vectors, seed=1), 0.9)
        assert chosen.found.meets, name
        others = make_asked(vectors, seed=2)
        assert others.recalls(partial(chosen.search, K)).mean() > 0.85, name  # of 80 queries
        assert chosen.label.startswith(name)
        assert peer.num_bytes > 0
        with held_threads(1):
            one = chosen.search(K, others.queries)
        np.testing.assert_array_equal(one, chosen.search(K, others.queries))
        assert one.shape == (80, K)
        seen.append(name)
    return seen


def test_faiss_finds_what_brute_force_finds() -> None:
    vectors = make_vectors(3000)
    named = faiss_peers(vectors, list_counts=(30,), m=8, ef_construction=40)
    assert check_peers(named, vectors) == [
        "faiss HNSW",
        "faiss IVF30-Flat",
        "faiss IVF30-SQ8",
        "faiss IVF30-fp16",
        "faiss IVF30-PQ fast-scan, refined",
    ]


def test_hnswlib_finds_what_brute_force_finds() -> None:
    pytest.importorskip("hnswlib")
    vectors = make_vectors(3000)
    assert check_peers(hnswlib_peers(vectors, m=8, ef_construction=40), vectors) == ["hnswlib"]


def test_usearch_finds_what_brute_force_finds() -> None:
    pytest.importorskip("usearch")
    vectors = make_vectors(3000)
    peers = usearch_peers(vectors, m=8, ef_construction=40)
    assert check_peers(peers, vectors) == ["usearch f32", "usearch i8"]


def test_scann_finds_what_brute_force_finds() -> None:
    pytest.importorskip("scann")
    vectors = make_vectors(3000)
    assert check_peers(scann_peers(vectors, k=K), vectors) == ["scann tree, AH, reorder"]


def told_peer(recall: Callable[[int, int], float]) -> Peer:
    """A peer that finds the share `recall` of what there is, by breadth and overfetch."""

    def look_up(queries: NDArray[np.float32], k: int, value: int, overfetch: int) -> NDArray:
        rows = np.tile(np.arange(k), (len(queries), 1))
        rows[:, int(k * recall(value, overfetch)) :] = -1
        return rows

    return Peer("told", "told", "breadth", 64, look_up, 1, 0.0, overfetch=(2, 1))


def test_a_peer_that_cannot_meet_the_target_says_so() -> None:
    asked = AskedQueries(
        np.zeros((6, 2), np.float32), Ragged(np.arange(7) * K, np.tile(np.arange(K), 6)), K, 4
    )
    never = set_peer(told_peer(lambda value, _: min(value, 5) / 10), asked, 0.9)
    assert not never.found.meets
    assert never.found.recall == pytest.approx(0.5)
    by_overfetch = told_peer(lambda value, overfetch: min(value / 20, 0.5 * overfetch))
    found = set_peer(by_overfetch, asked, 0.9)
    assert (found.overfetch, found.value) == (2, 18)  # 9 of 10 rows from 18 on
    assert found.label == "told breadth=18 overfetch=2"
