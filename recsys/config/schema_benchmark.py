"""Settings of the command `benchmark`: types and ranges."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any

from omegaconf import MISSING

from recsys.config.ranges import above, at_least, between, one_of
from recsys.config.schema_language import LanguageBenchmarkConfig
from recsys.config.schema_model import ModelConfig, OptimizerConfig
from recsys.config.schema_stages import StageConfig
from recsys.config.schema_train_benchmark import TrainBenchmarkConfig
from recsys.data import LEAST_MEMORY_GB
from recsys.foundations import ConfigError
from recsys.index import GRAPH_KINDS, LIST_KINDS

QUICK_BENCHMARKS = ("step", "loss", "sampler", "loader", "search", "prepare")  # of name=all
BENCHMARKS = (*QUICK_BENCHMARKS, "filter", "index", "index_build", "train", "language")


def _check_sizes(group: str, config: Any, *, optional: Collection[str] = ()) -> None:
    """Check that every number of a group is at least 1, and every list but some holds one."""
    for item in fields(config):
        key, value = f"{group}.{item.name}", getattr(config, item.name)
        numbers = value if isinstance(value, list) else [value]
        if not numbers and item.name not in optional:
            raise ConfigError(f"{key} must hold at least one number, got none.")
        for number in numbers:
            at_least(key, number, 1)


@dataclass(kw_only=True)
class StepBenchmarkConfig:
    """A training step of the model group, with the optimizer group, on shared draws."""

    catalogue_sizes: list[int] = MISSING
    naive_sizes: list[int] = MISSING  # of them, those with the naive program; or none
    batch_sizes: list[int] = MISSING  # on the smallest catalogue; fewer than two: not measured
    dims: list[int] = MISSING  # likewise
    num_users: int = MISSING
    batch_size: int = MISSING
    num_sampled: int = MISSING
    steps: int = MISSING  # a round

    def __post_init__(self) -> None:
        """Check the ranges."""
        _check_sizes("step", self, optional=("naive_sizes", "batch_sizes", "dims"))


@dataclass(kw_only=True)
class LossBenchmarkConfig:
    """Settings of recsys.benchmark.measure_loss."""

    sizes: list[int] = MISSING  # queries, and as many candidates
    plain_sizes: list[int] = MISSING  # of them, those with all logits at once; or none
    dim: int = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        _check_sizes("loss", self, optional=("plain_sizes",))


@dataclass(kw_only=True)
class SamplerBenchmarkConfig:
    """Settings of recsys.benchmark.measure_sampler."""

    catalogue_sizes: list[int] = MISSING
    num_draws: int = MISSING  # candidates a draw
    draws: int = MISSING  # a round

    def __post_init__(self) -> None:
        """Check the ranges."""
        _check_sizes("sampler", self)


@dataclass(kw_only=True)
class LoaderBenchmarkConfig:
    """Settings of recsys.benchmark.measure_loader."""

    num_rows: list[int] = MISSING
    events_a_user: int = MISSING
    num_items: int = MISSING
    history_length: int = MISSING
    batch_size: int = MISSING
    shuffle_rows: int = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        _check_sizes("loader", self)


@dataclass(kw_only=True)
class SearchBenchmarkConfig:
    """Settings of recsys.benchmark.measure_search."""

    catalogue_sizes: list[int] = MISSING
    dims: list[int] = MISSING  # fewer than two: not measured
    ks: list[int] = MISSING  # likewise
    dim: int = MISSING
    k: int = MISSING
    num_queries: int = MISSING
    num_excluded: int = MISSING  # a query

    def __post_init__(self) -> None:
        """Check the ranges."""
        _check_sizes("search", self, optional=("dims", "ks"))


@dataclass(kw_only=True)
class IndexBenchmarkConfig:
    """Settings of recsys.benchmark.measure_index."""

    catalogue_size: int = MISSING
    dim: int = MISSING
    num_clusters: int = MISSING
    spread: float = MISSING
    num_queries: int = MISSING
    queries_at_once: int = MISSING
    k: int = MISSING
    target_recall: float = MISSING
    build_minutes: float = MISSING  # of a graph that index=auto tries, as index.build_minutes
    m: int = MISSING  # of the graphs that are set by hand, as the next
    ef_construction: int = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        for key in ("catalogue_size", "dim", "num_clusters", "queries_at_once", "k"):
            at_least(f"index.{key}", getattr(self, key), 1)
        at_least("index.m", self.m, 2)
        at_least("index.ef_construction", self.ef_construction, 1)
        above("index.build_minutes", self.build_minutes, 0)
        at_least("index.num_queries", self.num_queries, 20)
        at_least("index.spread", self.spread, 0)
        between("index.target_recall", self.target_recall, 0, 1)


@dataclass(kw_only=True)
class IndexBuildBenchmarkConfig:
    """Settings of recsys.benchmark.measure_index_build."""

    num_items: int = MISSING
    dim: int = MISSING
    kind: str = MISSING
    num_lists: int | None = MISSING
    k: int = MISSING
    num_queries: int = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        for key in ("num_items", "dim", "k", "num_queries"):
            at_least(f"index_build.{key}", getattr(self, key), 1)
        if self.num_lists is not None:
            at_least("index_build.num_lists", self.num_lists, 1)
        one_of("index_build.kind", self.kind, ("flat", *GRAPH_KINDS, *LIST_KINDS))


@dataclass(kw_only=True)
class FilterBenchmarkConfig:
    """Settings of recsys.benchmark.measure_filter."""

    kind: str = MISSING
    catalogue_size: int = MISSING
    percents: list[int] = MISSING  # of the catalogue that are allowed
    dim: int = MISSING
    k: int = MISSING
    num_queries: int = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        one_of("filter.kind", self.kind, ("hnsw", "ivf_flat", "ivf_pq"))
        for key in ("catalogue_size", "dim", "k", "num_queries"):
            at_least(f"filter.{key}", getattr(self, key), 1)
        if not self.percents or not all(1 <= one <= 100 for one in self.percents):
            raise ConfigError(
                f"filter.percents must hold numbers from 1 to 100, got {self.percents}."
            )


@dataclass(kw_only=True)
class PrepareBenchmarkConfig:
    """Settings of recsys.benchmark.measure_prepare."""

    rows: int = MISSING
    ids: str = MISSING
    rows_a_user: int = MISSING  # in the mean, as the next
    rows_an_item: int = MISSING
    memory_gb: float = MISSING

    def __post_init__(self) -> None:
        """Check the ranges."""
        for key in ("rows", "rows_a_user", "rows_an_item"):
            at_least(f"prepare.{key}", getattr(self, key), 1)
        one_of("prepare.ids", self.ids, ("int", "string", "both"))
        at_least("prepare.memory_gb", self.memory_gb, LEAST_MEMORY_GB)


@dataclass(kw_only=True)
class BenchmarkConfig(StageConfig):
    """Measure rates and ratios on this machine."""

    name: str = MISSING
    rounds: int = MISSING
    model: ModelConfig = MISSING
    optimizer: OptimizerConfig = MISSING
    step: StepBenchmarkConfig = MISSING
    loss: LossBenchmarkConfig = MISSING
    sampler: SamplerBenchmarkConfig = MISSING
    loader: LoaderBenchmarkConfig = MISSING
    search: SearchBenchmarkConfig = MISSING
    index: IndexBenchmarkConfig = MISSING
    index_build: IndexBuildBenchmarkConfig = MISSING
    filter: FilterBenchmarkConfig = MISSING
    prepare: PrepareBenchmarkConfig = MISSING
    train: TrainBenchmarkConfig = MISSING
    language: LanguageBenchmarkConfig = MISSING

    def __post_init__(self) -> None:
        """Check the choices."""
        super().__post_init__()
        one_of("name", self.name, ("all", *BENCHMARKS))
        at_least("rounds", self.rounds, 1)
        if self.name == "language" and self.language.interactions is None:
            raise ConfigError("name=language needs a log: language.interactions=FILE.")
