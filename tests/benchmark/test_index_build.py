"""The benchmark of a build: the catalogue on disk, and figures of every step."""

from pathlib import Path

import numpy as np
import pytest

from recsys.benchmark import measure_index_build
from recsys.benchmark.index_build_jobs import (
    QUERIES,
    VECTORS,
    build_and_write,
    load_and_look_up,
    write_catalogue,
)
from recsys.data import make_clustered_vectors
from recsys.index import IndexSettings, read_vectors

SIZES = {"num_items": 70_000, "dim": 4, "num_queries": 30}


def test_the_catalogue_on_disk_is_the_one_in_memory(tmp_path: Path) -> None:
    write_catalogue(tmp_path, seed=3, **SIZES)
    wanted = make_clustered_vectors(70_000, 30, dim=4, num_clusters=700, spread=1.0, seed=3)
    assert np.array_equal(read_vectors(tmp_path / VECTORS), wanted[0])
    assert np.array_equal(read_vectors(tmp_path / QUERIES), wanted[1])


def test_a_build_and_lookups_say_what_they_took(tmp_path: Path) -> None:
    write_catalogue(tmp_path, seed=3, **SIZES)
    settings = IndexSettings(kind="ivf_flat", num_lists=16, num_probes=16)
    built = build_and_write(tmp_path, settings, 1)
    assert built.saved_bytes == (tmp_path / "index.faiss").stat().st_size
    # at least a code of 16 bytes and a row of 8 each
    assert built.saved_bytes >= 70_000 * 24
    assert built.peak_bytes >= built.before_bytes > 50_000_000
    assert 0 < built.own_bytes < built.peak_bytes
    found = load_and_look_up(tmp_path, settings, 10, 1)
    assert found.recall == 1.0  # every list is read
    assert min(built.seconds, found.load_seconds, found.seconds) > 0


def test_the_result_names_sizes_and_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "recsys.benchmark.index_build.run_in_fresh_process", lambda job, keep_memory: job()
    )
    result = measure_index_build(num_items=500, dim=4, kind="flat", k=5, num_queries=7, seed=0)
    assert list(result.measurements) == ["build", "write", "load", "lookup, one alone"]
    # a header of 37 bytes, a length of 8, and the vectors; 8 kB are 0 MB
    assert (result.settings["num_items"], result.settings["index_mb"]) == (500, 0)
    assert result.settings["index_recall"] == 1.0
    assert result.measurements["lookup, one alone"].units == 7
