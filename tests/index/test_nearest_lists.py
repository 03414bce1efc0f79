"""The lists that an inverted file reads: against a slow ranking, FAISS's own, and any batch."""

from typing import Any

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, held_threads
from recsys.index import FaissIndex, IndexSettings, nearest_lists
from recsys.index.nearest_lists import NearestLists, has_flat_centroids

_faiss: Any = faiss  # its type stubs lack some of the names it has


def make_lists(centroids: NDArray[np.float32]) -> NearestLists:
    dim = centroids.shape[1]
    quantizer = faiss.IndexFlatIP(dim)
    quantizer.add(np.ascontiguousarray(centroids))
    inner = faiss.IndexIVFFlat(quantizer, dim, len(centroids), faiss.METRIC_INNER_PRODUCT)
    assert has_flat_centroids(inner)
    return NearestLists(inner)


@settings(max_examples=160, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    num_lists=st.integers(1, 60),
    num_queries=st.integers(0, 9),
    dim=st.integers(1, 20),
    levels=st.sampled_from([1, 3, 10**6]),
    products=st.sampled_from([1, 100, 1 << 18]),
    group=st.sampled_from([1, 2, 3, 8]),
    data=st.data(),
)
def test_equals_the_slow_ranking_whatever_ties_there_are(
    seed: int, num_lists: int, num_queries: int, dim: int, levels: int, products: int,
    group: int, data: st.DataObject,
) -> None:  # fmt: skip
    num_probes = data.draw(st.integers(1, num_lists))
    rng = np.random.default_rng(seed)
    # Few levels: equal centroids and equal products, whose order float32 alone does not tell.
    centroids = (rng.integers(-levels, levels + 1, (num_lists, dim)) / 7).astype(np.float32)
    queries = (rng.integers(-3, 4, (num_queries, dim)) / 3).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearest_lists, "_PRODUCTS_AT_ONCE", products)
        patch.setattr(nearest_lists, "_IN_A_GROUP", group)
        lists, scores = make_lists(centroids).find(queries, num_probes)
    slow = queries.astype(np.float64)[:, None] * centroids.astype(np.float64)[None]
    expected = slow.sum(axis=2).astype(np.float32)
    np.testing.assert_array_max_ulp(scores, np.take_along_axis(expected, lists, axis=1), 1)
    for query, line in enumerate(lists):
        order = np.lexsort((np.arange(num_lists), -expected[query]))
        kept = expected[query][order[:num_probes]]
        assert len(np.unique(line)) == num_probes
        np.testing.assert_array_max_ulp(expected[query][line], kept, 1)
        ranked = np.lexsort((line, -scores[query]))
        assert ranked.tolist() == list(range(num_probes))


@pytest.mark.parametrize("threads", [1, 2])
def test_does_not_depend_on_batches_or_threads(threads: int) -> None:
    rng = np.random.default_rng(0)
    base = rng.standard_normal((50, 33)).astype(np.float32)
    # Copies that differ by single roundings: float32 products hide which is nearer.
    centroids = np.concatenate([base, np.nextafter(base, np.float32(9)), base])
    queries = rng.standard_normal((600, 33)).astype(np.float32)
    with held_threads(1):
        whole = make_lists(centroids).find(queries, 40)
    with held_threads(threads):
        for batch in (1, 7, 512):
            parts = [
                make_lists(centroids).find(queries[i : i + batch], 40) for i in range(0, 600, batch)
            ]
            lists = np.concatenate([part for part, _ in parts])
            assert lists.tobytes() == whole[0].tobytes()
            scores = np.concatenate([part for _, part in parts])
            assert scores.tobytes() == whole[1].tobytes()


@pytest.mark.parametrize("kind", ["ivf_flat", "ivf_sq8", "ivf_fp16", "ivf_pq", "ivf_pq_fast"])
def test_faiss_finds_in_these_lists_what_it_finds_alone(kind: str) -> None:
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((3000, 16)).astype(np.float32)
    queries = rng.standard_normal((40, 16)).astype(np.float32)
    chosen = IndexSettings(kind=kind, num_lists=24, num_codes=8, code_bits=4)
    inner = FaissIndex.build(vectors, chosen).inner
    lists = NearestLists(inner)
    parameters = _faiss.SearchParametersIVF(nprobe=5)
    scores, rows = lists.search(queries, 20, lists.find(queries, 5), parameters)
    own_scores, own_rows = inner.search(queries, 20, params=parameters)
    np.testing.assert_allclose(scores, own_scores, rtol=1e-5, atol=1e-5)
    shared = sum(len(np.intersect1d(a, b)) for a, b in zip(rows, own_rows, strict=True))
    assert shared >= 799  # of 800: equal codes may stand on either side of the end


def test_queries_that_would_leave_float32_are_refused() -> None:
    lists = make_lists(np.full((4, 3), 1e30, np.float32))
    with pytest.raises(ArgumentError, match="so long that scores would leave float32"):
        lists.find(np.full((2, 3), 1e30, np.float32), 2)
