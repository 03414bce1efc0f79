"""Estimates of a build: bytes against what is saved, words, refusals."""

import re
from pathlib import Path

import numpy as np
import pytest

from recsys.foundations import ConfigError
from recsys.index import (
    FaissIndex,
    IndexSettings,
    check_memory,
    estimate_build,
    estimate_kinds,
    plan_index,
    write_index,
)

KINDS = ["hnsw_sq8", "ivf_flat", "ivf_sq8", "ivf_fp16", "ivf_pq_fast"]
VECTORS = np.random.default_rng(0).standard_normal((20_000, 8), dtype=np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_the_bytes_are_those_of_the_file_within_a_tenth(kind: str, tmp_path: Path) -> None:
    settings = IndexSettings(kind=kind, m=8, ef_construction=8, num_lists=64)
    write_index(tmp_path / "index.faiss", FaissIndex.build(VECTORS, settings))
    size = (tmp_path / "index.faiss").stat().st_size
    estimate = estimate_build(VECTORS, settings)
    assert estimate.index_bytes == pytest.approx(size, rel=0.1)
    assert estimate.peak_bytes > estimate.index_bytes
    assert estimate.plan == plan_index(settings, num_candidates=20_000, dim=8)


def test_a_graph_over_whole_vectors_holds_links_and_a_flat_index_nothing() -> None:
    graph = estimate_build(VECTORS, IndexSettings(kind="hnsw", m=8, ef_construction=8))
    # 16 links below, 8/7 above in the mean, of 4 bytes, an offset and a level
    assert graph.index_bytes == round(20_000 * (4 * (16 + 8 / 7) + 8 + 4))
    flat = estimate_build(VECTORS, IndexSettings(kind="flat"))
    assert (flat.index_bytes, flat.seconds) == (0, 0.0)


def test_the_neighbours_of_a_factory_count() -> None:
    named = estimate_build(VECTORS, IndexSettings(kind="hnsw_sq8", m=4))
    factory = estimate_build(VECTORS, IndexSettings(kind="factory", factory="HNSW4,SQ8"))
    assert named.index_bytes == factory.index_bytes


def test_an_estimate_says_what_it_is_of() -> None:
    words = str(estimate_build(VECTORS, IndexSettings(kind="hnsw", m=8)))
    assert re.fullmatch(
        r"index hnsw \(HNSW8,Flat\) of 20,000 x 8: about 1\.61 MB beside 640 kB of vectors, up to "
        r"[\d.]+ MB beside them while it is built, .*(second|minutes).* with 1 thread",
        words.replace("0.64 MB", "640 kB"),
    )


def test_few_vectors_are_estimated_too() -> None:
    for count in (1, 2, 70):
        for kind in ("flat", "hnsw", "ivf_flat"):
            estimate = estimate_build(VECTORS[:count], IndexSettings(kind=kind))
            assert estimate.seconds < 60


def test_what_exceeds_the_memory_is_refused_with_what_it_needs() -> None:
    settings = IndexSettings(kind="ivf_flat", num_lists=1000)
    # 10^6 x 64 vectors of 4 bytes twice, rows of 8 bytes, 1000 centroids of 256 bytes
    with pytest.raises(ConfigError, match=r"at least 0\.52 .* 1,000,000 x 64 .*got 0\.5"):
        check_memory(settings, 1_000_000, 64, 0.5)
    check_memory(settings, 1_000_000, 64, 0.53)
    check_memory(settings, 1_000_000, 64, None)
    # a flat index is its vectors: 256 MB
    check_memory(IndexSettings(kind="flat"), 1_000_000, 64, 0.256)
    with pytest.raises(ConfigError, match=r"at least 0\.256 for an index flat"):
        check_memory(IndexSettings(kind="flat"), 1_000_000, 64, 0.25)


def distinct_kinds(settings: IndexSettings, memory_gb: float | None) -> list[str]:
    estimates = estimate_kinds(VECTORS, settings, memory_gb)
    return list(dict.fromkeys(one.plan.kind for one in estimates))


def test_kinds_beyond_the_memory_are_not_estimated() -> None:
    settings = IndexSettings(m=8, ef_construction=8)
    kinds = distinct_kinds(settings, None)
    assert kinds == ["ivf_flat", "ivf_fp16", "ivf_sq8", "ivf_pq_fast", "hnsw", "hnsw_sq8"]
    # with 640 kB of vectors: 640 + 160 kB of lists do not fit into 1.2 MB, half and fewer do
    small = distinct_kinds(settings, 0.0012)
    assert small == ["ivf_fp16", "ivf_sq8", "ivf_pq_fast"]
