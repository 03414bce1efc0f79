"""Refusal of benchmarks whose sizes cannot be held, before anything is measured."""

from collections.abc import Callable, Iterator, Sequence

from recsys.config.schema_benchmark import BenchmarkConfig
from recsys.foundations import ConfigError, available_memory
from recsys.index import IndexSettings, index_bytes, plan_index

_FLOAT = 4  # bytes
_Need = tuple[str, int, int]  # key, size, bytes


def check_benchmark_memory(config: BenchmarkConfig, names: Sequence[str]) -> None:
    """Check the sizes of those benchmarks by the least that they hold at once.

    Raises:
        ConfigError: One needs more memory than is free.
    """
    free = available_memory()
    for name in names:
        for key, size, needed in _NEEDS[name](config) if name in _NEEDS else ():
            if needed > free:
                raise ConfigError(
                    f"{key}: {size:,} needs at least {needed / 1e9:,.1f} GB of memory, of which "
                    f"{free / 1e9:,.1f} GB are free."
                )


def _step(config: BenchmarkConfig) -> Iterator[_Need]:
    """Give the tables of users and items, of all catalogues at once."""
    step, row = config.step, _FLOAT * config.model.embedding_dim
    tables = [(n + step.num_users) * row for n in set(step.catalogue_sizes)]
    yield "step.catalogue_sizes", max(step.catalogue_sizes), sum(tables)
    for batch_size in (step.batch_size, *step.batch_sizes):
        yield "step.batch_size", batch_size, batch_size * row
    yield "step.num_sampled", step.num_sampled, step.num_sampled * row


def _loss(config: BenchmarkConfig) -> Iterator[_Need]:
    """Give both sides and their gradients; where all logits are held, those and their gradients."""
    loss = config.loss
    for size in loss.sizes:
        yield "loss.sizes", size, 4 * size * loss.dim * _FLOAT
    for size in set(loss.plain_sizes) & set(loss.sizes):
        yield "loss.plain_sizes", size, 2 * size * size * _FLOAT


def _sampler(config: BenchmarkConfig) -> Iterator[_Need]:
    """Give the probabilities and the table that is made of them: a number and an alias."""
    for size in config.sampler.catalogue_sizes:
        yield "sampler.catalogue_sizes", size, size * (8 + 8)


def _loader(config: BenchmarkConfig) -> Iterator[_Need]:
    """Give the events, before they are written: user, item, time."""
    for size in config.loader.num_rows:
        yield "loader.num_rows", size, size * (4 + 4 + 8)


def _search(config: BenchmarkConfig) -> Iterator[_Need]:
    """Give the vectors and FAISS's copy of them, and for the plain way all scores."""
    search = config.search
    largest = max(search.catalogue_sizes)
    row = 2 * search.dim + search.num_queries
    yield "search.catalogue_sizes", largest, largest * row * _FLOAT
    for dim in search.dims:
        yield "search.dims", dim, 2 * min(search.catalogue_sizes) * dim * _FLOAT


def _index_build(config: BenchmarkConfig) -> Iterator[_Need]:
    """Give the index, beside the vectors, which are mapped."""
    build = config.index_build
    settings = IndexSettings(kind=build.kind)
    plan = plan_index(settings, num_candidates=build.num_items, dim=build.dim, quiet=True)
    needed = index_bytes(plan, settings, build.num_items, build.dim)
    yield "index_build.num_items", build.num_items, 0 if plan.kind == "flat" else needed


_NEEDS: dict[str, Callable[[BenchmarkConfig], Iterator[_Need]]] = {
    "step": _step,
    "loss": _loss,
    "sampler": _sampler,
    "loader": _loader,
    "search": _search,
    "index_build": _index_build,
}
