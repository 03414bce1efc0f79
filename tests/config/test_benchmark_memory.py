"""Benchmarks that no memory holds, and lists of sizes that may be empty."""

from typing import Any

import pytest

from recsys.config import BenchmarkConfig, benchmark_memory, compose_config
from recsys.config.build_benchmark import run_benchmarks
from recsys.foundations import ConfigError

FREE = 10**10


@pytest.fixture(autouse=True)
def ten_gigabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark_memory, "available_memory", lambda: FREE)


def make_config(name: str, settings: dict[str, Any]) -> BenchmarkConfig:
    return compose_config("benchmark", BenchmarkConfig, {"name": name, **settings})


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        # 10^8 queries and as many candidates with gradients: 4 x 10^8 x 64 x 4 bytes
        ("loss", {"loss.sizes": [10**8]}, "loss.sizes: 100,000,000 needs at least 102.4 GB"),
        # logits and their gradients: 2 x 40,000^2 x 4 bytes
        (
            "loss",
            {"loss.sizes": [40_000], "loss.plain_sizes": [40_000]},
            "loss.plain_sizes: 40,000 needs at least 12.8 GB",
        ),
        # (10^8 items + 10^5 users) x 64 x 4 bytes
        (
            "step",
            {"step.catalogue_sizes": [10**8]},
            "step.catalogue_sizes: 100,000,000 needs at least 25.6 GB",
        ),
        # all at once: (2 x 10^7 + 3 x 10^7 + 2 x 10^5) x 256 bytes
        (
            "step",
            {"step.catalogue_sizes": [20_000_000, 30_000_000, 20_000_000]},
            "step.catalogue_sizes: 30,000,000 needs at least 12.9 GB",
        ),
        # a byte a value, and a row of 8: 10^9 x 72 bytes; 126,491 centroids of 256 bytes
        (
            "index_build",
            {"index_build.num_items": 10**9},
            "index_build.num_items: 1,000,000,000 needs at least 72.0 GB",
        ),
        (
            "sampler",
            {"sampler.catalogue_sizes": [10**9]},
            "sampler.catalogue_sizes: 1,000,000,000 needs at least 16.0 GB",
        ),
        (
            "loader",
            {"loader.num_rows": [10**9]},
            "loader.num_rows: 1,000,000,000 needs at least 16.0 GB",
        ),
        # vectors twice and a score for each of 512 users: (2 x 64 + 512) x 10^7 x 4 bytes
        (
            "search",
            {"search.catalogue_sizes": [10**7]},
            "search.catalogue_sizes: 10,000,000 needs at least 25.6 GB",
        ),
    ],
)
def test_sizes_that_no_memory_holds_are_refused(
    name: str, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        run_benchmarks(make_config(name, settings))
    assert str(refused.value) == f"{words} of memory, of which 10.0 GB are free."


def test_what_is_not_measured_needs_no_memory() -> None:
    config = make_config("loss", {"step.catalogue_sizes": [10**9], "loss.plain_sizes": [10**6]})
    benchmark_memory.check_benchmark_memory(config, ["loss", "prepare"])


EMPTY = ["step.naive_sizes", "step.batch_sizes", "step.dims", "loss.plain_sizes"]


@pytest.mark.parametrize("key", [*EMPTY, "search.dims", "search.ks"])
def test_an_axis_may_be_left_out(key: str) -> None:
    config = make_config("all", {key: []})
    group, _, name = key.partition(".")
    assert getattr(getattr(config, group), name) == []


@pytest.mark.parametrize("key", ["step.catalogue_sizes", "loss.sizes", "loader.num_rows"])
def test_what_is_measured_needs_a_size(key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key} must hold at least one number, got none."):
        make_config("all", {key: []})
