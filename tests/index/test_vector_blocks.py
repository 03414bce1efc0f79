"""Vectors written in blocks, against those written whole."""

from pathlib import Path

import numpy as np
import pytest

from recsys.index import read_vectors, write_vector_blocks, write_vectors


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_blocks_give_the_bytes_of_the_whole(tmp_path: Path, size: int) -> None:
    vectors = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    blocks = (vectors[start : start + size] for start in range(0, 7, size))
    write_vector_blocks(tmp_path / "blocks.npy", (7, 5), blocks)
    write_vectors(tmp_path / "whole.npy", vectors)
    assert (tmp_path / "blocks.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()
    assert np.array_equal(read_vectors(tmp_path / "blocks.npy"), vectors)
