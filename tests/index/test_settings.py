"""Index settings: what they decide, what they refuse, and the way back to a flat index."""

import logging
from typing import Any

import numpy as np
import pytest

from recsys.foundations import ConfigError, FormatError
from recsys.index import FaissIndex, IndexSettings, plan_index


def plan(num_candidates: int = 100_000, dim: int = 64, **chosen: Any) -> tuple[str, str]:
    decided = plan_index(IndexSettings(**chosen), num_candidates=num_candidates, dim=dim)
    return decided.kind, decided.factory


def test_auto_that_nothing_has_tuned_is_flat() -> None:
    assert plan(1_000_000, kind="auto") == ("flat", "Flat")


def test_numbers_follow_from_the_data_where_none_is_given() -> None:
    decided = plan_index(IndexSettings(kind="ivf_pq"), num_candidates=1_000_000, dim=48)
    assert decided.factory == "IVF4000,PQ24x8"  # 4 sqrt(1e6) lists; 24 is the largest half divisor
    assert decided.num_probes == 500


def test_the_factory_string_is_read_as_settings() -> None:
    assert plan(kind="factory", factory="Flat") == ("flat", "Flat")
    assert plan(kind="factory", factory="HNSW16") == ("hnsw", "HNSW16,Flat")
    assert plan(kind="factory", factory="IVF100,Flat") == ("ivf_flat", "IVF100,Flat")
    assert plan(kind="factory", factory="IVF100,PQ16") == ("ivf_pq", "IVF100,PQ16x8")
    assert plan(kind="factory", factory="IVF100,PQ16x4") == ("ivf_pq", "IVF100,PQ16x4")
    assert plan(kind="factory", factory="IVF100,PQ16x4fs") == ("ivf_pq_fast", "IVF100,PQ16x4fs")
    assert plan(kind="factory", factory="IVF100,SQ8") == ("ivf_sq8", "IVF100,SQ8")
    assert plan(kind="factory", factory="IVF100,SQfp16") == ("ivf_fp16", "IVF100,SQfp16")
    assert plan(kind="factory", factory="HNSW16,SQ8") == ("hnsw_sq8", "HNSW16,SQ8")


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"kind": "annoy"}, "index.kind must be one of auto, flat, .*, got 'annoy'"),
        ({"kind": "hnsw", "m": 1}, "index.m must be from 2 to 512, got 1"),
        ({"kind": "hnsw", "ef_search": 0}, "index.ef_search must be at least 1, got 0"),
        ({"kind": "ivf_flat", "num_lists": 0}, "index.num_lists must be at least 1, got 0"),
        ({"kind": "ivf_flat", "num_lists": 2.5}, "index.num_lists must be a whole number, got 2.5"),
        ({"kind": "ivf_pq", "code_bits": 16}, "index.code_bits must be from 4 to 12, got 16"),
        ({"kind": "factory"}, "index.factory and index.kind=factory go together"),
        ({"kind": "flat", "factory": "Flat"}, "go together, got index.kind=flat"),
        ({"kind": "factory", "factory": "IVF0,Flat"}, "index.factory=IVF0,Flat is impossible"),
        ({"kind": "factory", "factory": "HNSW0"}, "index.factory=HNSW0 is impossible"),
        ({"kind": "factory", "factory": "nonsense"}, "got 'nonsense'"),
        ({"kind": "factory", "factory": "IVF9,PQ4x8fs"}, "codes of a fast scan have 4 bits"),
        ({"kind": "factory", "factory": "LSH"}, "got 'LSH'"),
    ],
)
def test_impossible_settings_are_refused_with_their_value(
    chosen: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        IndexSettings(**chosen)


def test_settings_that_do_not_fit_the_vectors_are_refused_before_the_build() -> None:
    with pytest.raises(ConfigError, match="must divide the 50 dimensions of the vectors, got 8"):
        plan(kind="ivf_pq", num_codes=8, dim=50)
    with pytest.raises(ConfigError, match=r"index\.num_probes must be at most the 10 lists .* 11"):
        plan(kind="ivf_flat", num_lists=10, num_probes=11)


@pytest.mark.parametrize(
    ("factory", "needed"), [("IVF1024,Flat", 1024), ("IVF64,PQ8", 256), ("IVF16,PQ4x8", 256)]
)
def test_too_few_vectors_give_a_flat_index_and_one_warning_with_both_counts(
    factory: str, needed: int, caplog: pytest.LogCaptureFixture
) -> None:
    vectors = np.random.default_rng(0).standard_normal((48, 16), dtype=np.float32)
    with caplog.at_level(logging.WARNING):
        index = FaissIndex.build(vectors, IndexSettings(kind="factory", factory=factory))
    assert index.kind == "flat"
    assert len(caplog.records) == 1
    assert "48 vectors" in caplog.text
    assert f"needs {needed}" in caplog.text
    assert factory.split(",")[0] in caplog.text


def test_thin_training_is_built_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert plan(48, kind="ivf_flat", num_lists=48)[0] == "ivf_flat"
    assert len(caplog.records) == 1
    assert "48 vectors train an index IVF48,Flat poorly; 1872 are advised" in caplog.text


def test_settings_survive_json() -> None:
    chosen = IndexSettings(kind="ivf_pq", num_lists=12, num_codes=4)
    assert IndexSettings.from_json(chosen.to_json()) == chosen
    others: list[Any] = [{}, [], chosen.to_json() | {"kind": "x"}, chosen.to_json() | {"m": "x"}]
    for damaged in others:
        with pytest.raises(FormatError, match="settings of the index are damaged"):
            IndexSettings.from_json(damaged)
