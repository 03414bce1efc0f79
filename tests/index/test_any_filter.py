"""Any filter over any index: the right number, order and scores, and no row that is forbidden."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recsys.foundations import Ragged
from recsys.index import ExactIndex, FaissIndex, Index, IndexSettings, build_main

# Index -> whether it is exact: an inverted file is, if it reads all its lists.
KINDS: dict[str, tuple[IndexSettings | None, bool]] = {
    "exact": (None, True),
    "flat": (IndexSettings(kind="flat"), True),
    "hnsw": (IndexSettings(kind="hnsw", m=4, ef_construction=20, ef_search=2), False),
    "ivf_flat": (IndexSettings(kind="ivf_flat", num_lists=12, num_probes=1), False),
    "ivf_flat, all lists": (IndexSettings(kind="ivf_flat", num_lists=6, num_probes=6), True),
    "ivf_pq": (
        IndexSettings(kind="ivf_pq", num_lists=8, num_probes=2, num_codes=2, code_bits=4),
        False,
    ),
    "ivf_pq_fast": (
        IndexSettings(kind="ivf_pq_fast", num_lists=8, num_probes=2, num_codes=2, code_bits=4),
        False,
    ),
    "ivf_sq8": (IndexSettings(kind="ivf_sq8", num_lists=8, num_probes=2), False),
    "ivf_fp16": (IndexSettings(kind="ivf_fp16", num_lists=8, num_probes=2), False),
    "hnsw_sq8": (IndexSettings(kind="hnsw_sq8", m=4, ef_construction=20, ef_search=2), False),
    "scann": (IndexSettings(kind="scann", num_lists=8, num_probes=2, overfetch=1), False),
}
SIZES = (20, 700)
_BUILT: dict[tuple[str, int, bool], Index] = {}


def make_vectors(count: int, *, ties: bool) -> NDArray[np.float32]:
    vectors = np.random.default_rng(count).standard_normal((count, 8))
    return np.asarray(np.round(vectors) if ties else vectors, np.float32)


def index_of(kind: str, count: int, *, ties: bool) -> Index:
    if kind == "scann":
        pytest.importorskip("scann")
    if (kind, count, ties) not in _BUILT:
        vectors, chosen = make_vectors(count, ties=ties), KINDS[kind][0]
        built = ExactIndex(vectors) if chosen is None else build_main(vectors, chosen)
        _BUILT[kind, count, ties] = built
    return _BUILT[kind, count, ties]


def best_by_hand(
    query: NDArray[np.float32], vectors: NDArray[np.float32], rows: NDArray[Any], k: int
) -> list[int]:
    products = query.astype(np.float64)[:, None] * vectors[rows].T.astype(np.float64)
    scores = products.sum(axis=0).astype(np.float32)
    return [int(rows[place]) for place in np.lexsort((rows, -scores))[:k]]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_list_is_full_ordered_and_free_of_what_is_forbidden(
    kind: str, data: st.DataObject
) -> None:
    count = data.draw(st.sampled_from(SIZES), "candidates")
    ties = data.draw(st.booleans(), "ties")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16), "seed"))
    num_allowed = data.draw(st.integers(1, count) | st.sampled_from([1, count]), "allowed")
    num_excluded = data.draw(st.integers(0, count) | st.integers(0, 10), "excluded")
    k = data.draw(st.integers(1, count) | st.integers(1, 10), "k")
    vectors = make_vectors(count, ties=ties)
    queries = rng.standard_normal((3, 8)).astype(np.float32)
    # Worst first: a graph or a list that leads to the best rows leads to none that is allowed.
    order = np.argsort(vectors @ queries[0]) if data.draw(st.booleans(), "worst") else None
    allowed = np.sort(
        rng.permutation(count)[:num_allowed] if order is None else order[:num_allowed]
    )
    exclude = Ragged.from_pairs(
        np.repeat(np.arange(3), num_excluded),
        np.concatenate([rng.permutation(count)[:num_excluded] for _ in range(3)]),
        3,
    )
    index = index_of(kind, count, ties=ties)
    hits = index.search(queries, k, exclude=exclude, allowed=allowed)
    for number, (rows, scores) in enumerate(hits):
        left = np.setdiff1d(allowed, exclude[number])
        assert len(rows) == min(k, len(left))
        assert np.isin(rows, left).all()
        assert len(np.unique(rows)) == len(rows)
        assert best_by_hand(queries[number], vectors, rows, k) == rows.tolist()
        exact = (queries[number].astype(np.float64) @ vectors[rows].T).astype(np.float32)
        np.testing.assert_array_max_ulp(scores, exact, 1)
        if KINDS[kind][1]:
            assert rows.tolist() == best_by_hand(queries[number], vectors, left, k)


@pytest.mark.parametrize("kind", ["hnsw", "ivf_flat", "ivf_pq"])
def test_a_filter_costs_no_quality(kind: str) -> None:
    vectors = np.random.default_rng(0).standard_normal((4000, 8)).astype(np.float32)
    chosen = {
        "hnsw": IndexSettings(kind="hnsw", m=8, ef_construction=40, ef_search=4),
        "ivf_flat": IndexSettings(kind="ivf_flat", num_lists=64, num_probes=4),
        "ivf_pq": IndexSettings(
            kind="ivf_pq", num_lists=64, num_probes=4, num_codes=8, code_bits=4
        ),
    }[kind]
    index = FaissIndex.build(vectors, chosen)
    queries = np.random.default_rng(1).standard_normal((200, 8)).astype(np.float32)

    def recall(allowed: NDArray[np.int64] | None) -> float:
        truth = index.exact.search(queries, 5, allowed=allowed)
        found = index.search(queries, 5, allowed=allowed)
        shared = [len(np.intersect1d(a[0], b[0])) for a, b in zip(found, truth, strict=True)]
        return sum(shared) / 1000

    whole = recall(None)
    assert whole < 0.97  # or there is nothing to lose
    for share in (0.8, 0.5, 0.25, 0.1, 0.01):
        allowed = np.flatnonzero(np.random.default_rng(2).random(4000) < share)
        assert recall(allowed) > whole - 0.05
