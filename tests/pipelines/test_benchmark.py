"""The stage `benchmark` in tiny sizes: its structure, never its times."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from pipelines.benchmark import benchmark
from recsys.benchmark import peak_bytes
from recsys.config import BenchmarkConfig, compose_config
from recsys.foundations import ConfigError

TINY = {
    "threads": 1,
    "rounds": 2,
    "model.embedding_dim": 4,
    "step.catalogue_sizes": [50, 20],
    "step.naive_sizes": [20],
    "step.batch_sizes": [4, 8],
    "step.dims": [4],
    "step.num_users": 30,
    "step.batch_size": 8,
    "step.num_sampled": 6,
    "step.steps": 2,
    "loss.sizes": [16, 32],
    "loss.plain_sizes": [16],
    "loss.dim": 4,
    "sampler.catalogue_sizes": [50, 100],
    "sampler.num_draws": 10,
    "sampler.draws": 2,
    "loader.num_rows": [100, 300],
    "loader.events_a_user": 10,
    "loader.num_items": 20,
    "loader.history_length": 3,
    "loader.batch_size": 30,
    "loader.shuffle_rows": 200,
    "search.catalogue_sizes": [50, 20],
    "search.dims": [3, 4],
    "search.ks": [2, 30],
    "search.dim": 4,
    "search.k": 7,
    "search.num_queries": 5,
    "search.num_excluded": 3,
    "filter.catalogue_size": 300,
    "filter.percents": [10, 50],
    "filter.k": 5,
    "filter.num_queries": 3,
    "prepare.rows": 500,
    "prepare.rows_a_user": 5,
    "prepare.rows_an_item": 10,
    "prepare.memory_gb": 1,
}


# Each by time and by memory; where malloc keeps its memory, by time.
LOSS_PAIRS = [
    *2 * [("float32 blocks, B = 16", "plain torch, all logits, B = 16")],
    *2 * [("float32 blocks, B = 16", "torch's linear_cross_entropy, B = 16")],
    *2 * [("bfloat16 blocks, B = 16", "float32 blocks, B = 16")],
    *2 * [("float32 blocks, in-batch, B = 16", "plain torch, all logits, B = 16")],
    (
        "float32 blocks, memory kept, B = 16",
        "plain torch, all logits, memory kept, B = 16",
    ),
    *2 * [("float32 blocks, B = 32", "torch's linear_cross_entropy, B = 32")],
    *2 * [("bfloat16 blocks, B = 32", "float32 blocks, B = 32")],
]


def compute_here(job: Callable[[], object], *, keep_memory: bool) -> object:
    """Run a job of the loss in this process: a new one takes two seconds to start."""
    assert keep_memory in (False, True)
    return job()


def count_tensors(
    job: Callable[..., object], *, prepare: Callable[[], object] | None = None
) -> int:
    given = () if prepare is None else (prepare(),)
    return peak_bytes(lambda: job(*given))


@pytest.fixture
def loss_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recsys.benchmark.loss.run_in_fresh_process", compute_here)


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do here what has a process of its own, for each takes seconds to start."""
    for name in ("loss", "sampler", "loader", "search"):
        monkeypatch.setattr(f"recsys.benchmark.{name}.resident_peak", count_tensors)
    monkeypatch.setattr(
        "recsys.benchmark.process_use.run_in_fresh_process", lambda job, keep_memory: job()
    )


def run_stage(folder: Path, **settings: Any) -> dict[str, Any]:
    keys = {name.replace("__", "."): value for name, value in settings.items()}
    cfg = compose_config("benchmark", BenchmarkConfig, TINY | keys)
    benchmark(cfg, folder)
    written: dict[str, Any] = json.loads((folder / "benchmark.json").read_text())["results"]
    return written


@pytest.mark.usefixtures("loss_in_this_process")
@pytest.mark.skipif(
    not hasattr(torch.nn.functional, "linear_cross_entropy"), reason="one way less to compare"
)
def test_measures_everything_that_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = run_stage(tmp_path)
    pairs = {
        name: [(ratio["first"], ratio["second"]) for ratio in one["ratios"]]
        for name, one in results.items()
    }
    assert pairs == {
        "step": [
            ("step, 50 items", "step, 20 items"),
            ("step, 50 items", "floor program, 50 items"),
            ("step, 20 items", "floor program, 20 items"),
            ("step, 20 items", "naive: all logits, dense Adam, 20 items"),
            ("step, repeats merged, 50 items", "step, repeats merged, 20 items"),
            ("step, repeats merged, 50 items", "floor program, 50 items"),
            ("step, repeats merged, 20 items", "floor program, 20 items"),
            ("step, repeats merged, 20 items", "naive: all logits, dense Adam, 20 items"),
        ],
        "loss": LOSS_PAIRS,
        "sampler": [
            ("alias table", "searchsorted"),
            ("alias table", "torch.multinomial"),
            ("alias table", "item of a random training row"),
            ("alias table", "one random read a draw"),
        ],
        "loader": [
            ("users and items, shuffled", "Dataset.__getitem__"),
            ("users and items, shuffled", "Parquet row groups, not shuffled"),
            ("batches with histories", "users and items, shuffled"),
        ],
        "search": [
            ("exact search", "faiss IndexFlatIP"),
            ("exact search", "bare product"),
            ("exact search", "product and topk"),
            ("exact search, each without its seen items", "exact search"),
            ("exact search", "product and topk"),  # of memory
        ],
        "prepare": [
            ("integer ids", "reference program"),
            ("string ids", "reference program"),
            ("string ids", "integer ids"),
            ("integer ids", "reference program"),
            ("string ids", "reference program"),
        ],
    }
    for one in results.values():
        for measurement in one["measurements"].values():
            assert len(measurement["seconds"]) == 2
            assert measurement["units_per_second"] > 0
    assert results["step"]["measurements"]["step, 50 items"]["units"] == 16
    loaded = results["loader"]["measurements"]
    assert loaded["batches with histories"]["units"] == 90  # three of the four batches are whole
    assert loaded["Parquet row groups, not shuffled"]["units"] == 100
    assert "product and topk" in capsys.readouterr().out
    machine = json.loads((tmp_path / "benchmark.json").read_text())["machine"]
    assert machine["rates"]["threads"] == 1
    grown = {name for name, one in results.items() if one["growth"]}
    assert grown >= {"step", "sampler", "loader", "search"}
    pictures = list(tmp_path.glob("*.png"))
    assert {path.name.partition("_")[0] for path in pictures} == grown
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    page = (tmp_path / "benchmark.md").read_text()
    assert [f"### {name}" in page for name in results] == 6 * [True]


def test_runs_the_one_that_is_named_with_other_groups(tmp_path: Path) -> None:
    results = run_stage(tmp_path, name="step", optimizer="adam", model="factorization")
    assert list(results) == ["step"]
    clipped = run_stage(tmp_path, name="step", optimizer__gradient_clip=1.0)
    assert list(clipped) == ["step"]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("name", "speed", "name must be one of all, step, loss, sampler, loader, search, prepare"),
        ("rounds", 0, "rounds must be at least 1"),
        ("step.catalogue_sizes", [], "step.catalogue_sizes must hold at least one number"),
        ("loss.sizes", [0], r"loss\.sizes must be at least 1"),
        ("search.k", 0, "search.k must be at least 1"),
        ("index_build.num_items", 0, "index_build.num_items must be at least 1"),
        ("index_build.kind", "auto", "index_build.kind must be one of flat, hnsw, hnsw_sq8, ivf_"),
        ("filter.k", 0, "filter.k must be at least 1"),
        ("filter.kind", "flat", "filter.kind must be one of hnsw, ivf_flat, ivf_pq"),
        ("filter.percents", [], "filter.percents must hold numbers from 1 to 100"),
        ("filter.percents", [50, 101], "filter.percents must hold numbers from 1 to 100"),
    ],
)
def test_refuses_impossible_settings_by_name(key: str, value: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        compose_config("benchmark", BenchmarkConfig, {key: value})
