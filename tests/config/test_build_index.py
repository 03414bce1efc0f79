"""From settings to an index: what is said before, and what memory refuses."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recsys.config import ReindexConfig, build_index, compose_config
from recsys.foundations import ConfigError
from recsys.index import FaissIndex, TuningQueries

VECTORS = np.random.default_rng(0).standard_normal((3000, 8), dtype=np.float32)


def ask(most: int) -> TuningQueries:
    return TuningQueries(VECTORS[:most])


def stop(*_: object, **__: object) -> None:
    raise StopIteration


def build(folder: Path, **settings: Any) -> str:
    chosen = {"bundle": "b"} | {key.replace("__", "."): value for key, value in settings.items()}
    config = compose_config("index", ReindexConfig, chosen)
    return build_index.build_index(config.index, VECTORS, ask, folder, seed=0).index.kind


def test_a_build_is_announced_with_size_and_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="recsys.config.build_index"):
        assert build(tmp_path, index="ivf_sq8", index__num_lists=8) == "ivf_sq8"
    (said,) = [one.getMessage() for one in caplog.records if "build_index" in one.name]
    assert said.startswith("index ivf_sq8 (IVF8,SQ8) of 3,000 x 8: about 0.0483 MB beside 0.096 MB")


def test_auto_announces_every_kind_that_it_may_build(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_index, "tune_index", stop)
    some = {"index__exact_below": 100, "index__num_queries": 40, "index__target_k": 5}
    logged = caplog.at_level(logging.INFO, logger="recsys.config.build_index")
    with logged, pytest.raises(StopIteration):
        build(tmp_path, index="auto", index__m=4, index__ef_construction=8, **some)
    said = [one.getMessage() for one in caplog.records if "build_index" in one.name]
    kinds = list(dict.fromkeys(one.split()[4] for one in said))
    assert kinds == ["ivf_flat", "ivf_fp16", "ivf_sq8", "ivf_pq_fast", "hnsw", "hnsw_sq8"]


def test_more_than_is_free_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_index, "available_memory", lambda: 1000)
    with caplog.at_level(logging.WARNING, logger="recsys.config.build_index"):
        build(tmp_path, index="ivf_flat", index__num_lists=8)
    (said,) = [one.getMessage() for one in caplog.records if "build_index" in one.name]
    assert "beside the vectors, of which 1e-06 GB are free" in said


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf_pq_fast"])
def test_a_bound_of_memory_holds_for_every_kind_before_it_is_built(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FaissIndex, "build", None)  # is never asked
    with pytest.raises(ConfigError, match=rf"index\.memory_gb must be at least .* {kind} of 3,000"):
        build(tmp_path, index=kind, index__memory_gb=1e-6)
    with pytest.raises(ConfigError, match=r"index\.memory_gb must be above 0, got 0"):
        build(tmp_path, index=kind, index__memory_gb=0)
