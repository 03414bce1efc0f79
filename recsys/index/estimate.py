"""What a build will take, before it begins: memory by arithmetic, time by a part that is measured.

Dimensions: C candidates, D embedding width.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import faiss
import numpy as np
from numpy.typing import NDArray

from recsys.foundations import ConfigError, num_threads
from recsys.index.build_inner import build_inner, num_training_vectors
from recsys.index.families import (
    Family,
    decided,
    graph_families,
    held_bytes,
    index_bytes,
    list_counts,
    list_families,
)
from recsys.index.plan import IndexPlan, plan_index
from recsys.index.settings import GRAPH_KINDS, LIST_KINDS, IndexSettings

_PASSES = 10  # of FAISS's k-means over the vectors that train the lists
_CODE_PASSES = 25  # over those that train a code, 256 for each of its values
_TRAINING_PER_CODE = 256
_NARROW = 4  # times longer a product takes whose vectors are parts of a few dimensions
_BLOCK, _MOST_CENTROIDS = 2048, 4096  # that are measured
_LARGEST_PART, _SHARE_OF_PART = 5000, 20  # of a graph that is built to see how long it takes
_GROWTH = 1.5  # a list that grows asks for up to twice what it holds


@dataclass(frozen=True, kw_only=True)
class BuildEstimate:
    """What a build will take.

    Attributes:
        plan: What is built.
        num_candidates: C.
        dim: D.
        index_bytes: What the index holds beside the vectors, once it is there.
        peak_bytes: Of memory while it is built, beside the vectors.
        seconds: By a measured part, with the threads that are set.
        threads: Those.
    """

    plan: IndexPlan
    num_candidates: int
    dim: int
    index_bytes: int
    peak_bytes: int
    seconds: float
    threads: int

    def __str__(self) -> str:
        vectors = 4 * self.num_candidates * self.dim
        threads = f"{self.threads} thread" + ("s" if self.threads > 1 else "")
        return (
            f"index {self.plan.kind} ({self.plan.factory}) of {self.num_candidates:,} x {self.dim}:"
            f" about {_size(self.index_bytes)} beside {_size(vectors)} of vectors, up to "
            f"{_size(self.peak_bytes)} beside them while it is built, "
            f"{_duration(self.seconds)} with {threads}"
        )


def check_memory(
    settings: IndexSettings, num_candidates: int, dim: int, memory_gb: float | None
) -> None:
    """Check that an index and its vectors stay within a bound.

    Args:
        settings: Of the index; not auto.
        num_candidates: C.
        dim: D.
        memory_gb: The bound; None: there is none.

    Raises:
        ConfigError: They do not.
    """
    if memory_gb is None:
        return
    plan = plan_index(settings, num_candidates=num_candidates, dim=dim, quiet=True)
    vectors = 4 * num_candidates * dim
    needed = vectors + held_bytes(plan, settings, num_candidates, dim)
    if needed > memory_gb * 1e9:
        raise ConfigError(
            f"index.memory_gb must be at least {needed / 1e9:.3g} for an index {plan.kind} of "
            f"{num_candidates:,} x {dim} with its vectors ({_size(vectors)}), got {memory_gb:g}."
        )


def estimate_build(vectors: NDArray[np.float32], settings: IndexSettings) -> BuildEstimate:
    """Estimate what `build_main` will take; takes a small share of that itself.

    Args:
        vectors: [C, D], at least one.
        settings: Not auto.

    Raises:
        ConfigError: The settings are impossible for this width.
    """
    count, dim = vectors.shape
    plan = plan_index(settings, num_candidates=count, dim=dim, quiet=True)
    whole = index_bytes(plan, decided(settings, plan), count, dim)
    training, seconds, threads = 4 * dim * num_training_vectors(count, plan), 0.0, num_threads()
    peak = 4 * count  # the lengths of the vectors
    if plan.kind in GRAPH_KINDS:
        peak += round(_GROWTH * whole)
        seconds = _graph_seconds(vectors, settings)
        threads = 1 if settings.reproducible else threads
    elif plan.kind in LIST_KINDS:
        peak += round(_GROWTH * whole) + 2 * training
        seconds = _list_seconds(vectors, plan)
    return BuildEstimate(
        plan=plan,
        num_candidates=count,
        dim=dim,
        index_bytes=held_bytes(plan, settings, count, dim),
        peak_bytes=peak,
        seconds=seconds,
        threads=threads,
    )


def estimate_kinds(
    vectors: NDArray[np.float32], settings: IndexSettings, memory_gb: float | None
) -> Iterator[BuildEstimate]:
    """Estimate each kind that `tune_index` builds, with as many lists as the middle of its tries.

    Args:
        vectors: [C, D], at least one.
        settings: Build parameters of all kinds.
        memory_gb: Bound of an index with its vectors; None: any.
    """
    most = math.inf if memory_gb is None else memory_gb * 1e9
    counts = list_counts(settings, len(vectors))
    middle = counts[len(counts) // 2]
    tried = (
        *list_families(settings, *vectors.shape, num_lists=middle, most_bytes=most),
        *graph_families(settings, *vectors.shape, most_bytes=most),
    )
    for family in tried:
        if isinstance(family, Family):
            yield estimate_build(vectors, family.settings)


def _graph_seconds(vectors: NDArray[np.float32], settings: IndexSettings) -> float:
    """Build a part; a vector's place is found in steps that grow as the logarithm of the size."""
    part = max(min(_LARGEST_PART, len(vectors) // _SHARE_OF_PART), 2)
    some = np.ascontiguousarray(vectors[:: max(len(vectors) // part, 1)][:part], np.float32)
    started = time.perf_counter()
    build_inner(some, settings)
    taken = time.perf_counter() - started
    steps = [size * math.log(size + 1) for size in (len(vectors), len(some))]
    return taken * steps[0] / steps[1]


def _list_seconds(vectors: NDArray[np.float32], plan: IndexPlan) -> float:
    """Time products of a block with as many centroids; both k-means and adding are made of them."""
    count = len(vectors)
    block = np.ascontiguousarray(vectors[:: max(count // _BLOCK, 1)][:_BLOCK], np.float32)
    num_centroids = min(plan.num_lists, _MOST_CENTROIDS, count)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(np.ascontiguousarray(vectors[:num_centroids], np.float32))
    index.search(block, 1)  # the first one starts the threads
    started = time.perf_counter()
    index.search(block, 1)
    product = (time.perf_counter() - started) / (len(block) * num_centroids)
    trained = num_training_vectors(count, plan)
    products = plan.num_lists * (_PASSES * trained + count)
    values = plan.num_training if plan.num_training > plan.num_lists else 256
    if "PQ" in plan.factory:
        learnt = min(trained, _TRAINING_PER_CODE * values)
        products += _NARROW * values * (_CODE_PASSES * learnt + count)
    return product * products


def _size(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:.3g} GB" if num_bytes >= 1e9 else f"{num_bytes / 1e6:.3g} MB"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "less than a second"
    return f"{seconds:.2g} seconds" if seconds < 100 else f"{seconds / 60:.2g} minutes"
