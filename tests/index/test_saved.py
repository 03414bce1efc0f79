"""Saved indexes and vectors: the way there and back, and every damaged file refused."""

import struct
from pathlib import Path

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

from recsys.foundations import FormatError, MissingFileError
from recsys.index import (
    FaissIndex,
    IndexSettings,
    read_index,
    read_vectors,
    write_index,
    write_vectors,
)

SETTINGS = [
    IndexSettings(kind="flat"),
    IndexSettings(kind="hnsw", m=8),
    IndexSettings(kind="ivf_flat", num_lists=8),
    IndexSettings(kind="ivf_pq", num_lists=8, num_codes=2, code_bits=4),
    IndexSettings(kind="hnsw_sq8", m=8),
    IndexSettings(kind="ivf_sq8", num_lists=8),
    IndexSettings(kind="ivf_fp16", num_lists=8),
    IndexSettings(kind="ivf_pq_fast", num_lists=8, num_codes=4),
]


def make_vectors(count: int = 800, *, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, 8), dtype=np.float32)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings.kind)
def test_a_read_index_gives_the_same_hits(settings: IndexSettings, tmp_path: Path) -> None:
    index = FaissIndex.build(make_vectors(), settings)
    write_vectors(tmp_path / "vectors.npy", make_vectors())
    write_index(tmp_path / "index.faiss", index)
    again = read_index(tmp_path / "index.faiss", read_vectors(tmp_path / "vectors.npy"), settings)
    queries = make_vectors(40, seed=1)
    assert again.kind == index.kind
    assert np.array_equal(
        again.search(queries, 10).candidate_rows, index.search(queries, 10).candidate_rows
    )
    assert sorted(file.name for file in tmp_path.iterdir()) == ["index.faiss", "vectors.npy"]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings.kind)
def test_a_truncated_index_is_refused(settings: IndexSettings, tmp_path: Path) -> None:
    path = tmp_path / "index.faiss"
    write_index(path, FaissIndex.build(make_vectors(), settings))
    whole = path.read_bytes()
    for size in (0, 10, 40, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(FormatError, match=r"index\.faiss is damaged"):
            read_index(path, make_vectors(), settings)


def test_a_length_beyond_the_file_is_refused_without_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "index.faiss"
    write_index(path, FaissIndex.build(make_vectors(), SETTINGS[0]))
    content = bytearray(path.read_bytes())
    content[37:45] = struct.pack("<q", 1 << 38)  # the length of the vectors' bytes
    path.write_bytes(bytes(content))
    with pytest.raises(FormatError, match="is damaged"):
        read_index(path, make_vectors(), SETTINGS[0])


def test_an_index_of_other_vectors_or_another_metric_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "index.faiss"
    write_index(path, FaissIndex.build(make_vectors(), SETTINGS[0]))
    with pytest.raises(FormatError, match="holds 800 vectors of width 8, the item vectors are 799"):
        read_index(path, make_vectors(799), SETTINGS[0])
    by_distance = faiss.IndexFlatL2(8)
    by_distance.add(make_vectors())
    faiss.write_index(by_distance, str(path))
    with pytest.raises(FormatError, match=r"damaged: it begins with b'IxF2'"):
        read_index(path, make_vectors(), SETTINGS[0])
    graph = faiss.IndexHNSWFlat(8, 8, faiss.METRIC_L2)
    graph.add(make_vectors())
    faiss.write_index(graph, str(path))
    with pytest.raises(FormatError, match="another metric than the inner product"):
        read_index(path, make_vectors(), SETTINGS[1])


def test_damaged_vectors_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "vectors.npy"
    write_vectors(path, make_vectors())
    whole = path.read_bytes()
    for content in (b"", whole[:50], whole[:-1], b"x" * 500):
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"vectors\.npy is damaged"):
            read_vectors(path)
    for other in (np.zeros(3, np.float32), np.zeros((3, 3)), np.array([["a"]], object)):
        np.save(path, other, allow_pickle=True)
        with pytest.raises(FormatError, match=r"vectors\.npy is damaged"):
            read_vectors(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"vectors\.npy does not exist"):
        read_vectors(tmp_path / "vectors.npy")
    with pytest.raises(MissingFileError, match=r"index\.faiss does not exist"):
        read_index(tmp_path / "index.faiss", make_vectors(), SETTINGS[0])
