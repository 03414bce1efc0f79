"""Which indexes `tune_index` tries, what each holds in memory, and why some are not tried.

Dimensions: C candidates, D embedding width.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from recsys.foundations import ConfigError
from recsys.index.plan import IndexPlan, plan_index
from recsys.index.settings import GRAPH_KINDS, LIST_KINDS, IndexSettings

_OVERFETCH = (16, 12, 8, 6, 4, 3, 2, 1)  # of ivf_pq_fast, falling
_CANDIDATES_PER_RESULT = 3
_BROADEST_GRAPH_SEARCH = 4096
_TRAINING_PER_CENTROID = 39  # candidates; below it FAISS advises against
_LISTS_PER_ROOT = (1, 2, 4, 8, 16)  # times sqrt(C)
# ivf_pq is none of them: on 10,000 x 64 its lookups were slower than those of ivf_pq_fast.
_WITH_LISTS = ("ivf_flat", "ivf_fp16", "ivf_sq8", "ivf_pq_fast")
_DIMENSIONS_A_CODE = (2, 4)  # of ivf_pq_fast


@dataclass(frozen=True)
class Family:
    """One index to build, and how its breadth is set.

    Attributes:
        settings: What to build; every number that the data decides is decided.
        plan: The same in FAISS's words.
        index_bytes: Estimate of what FAISS holds beside the stored vectors.
        dial: The setting that is searched for: `num_probes` or `ef_search`.
        largest: The dial's largest value.
        overfetch: The values of that setting to try, falling; one where it means nothing.
    """

    settings: IndexSettings
    plan: IndexPlan
    index_bytes: int
    dial: str
    largest: int
    overfetch: tuple[int, ...]

    @property
    def kind(self) -> str:
        """Name it as the settings do."""
        return self.plan.kind

    @property
    def stores(self) -> str:
        """Name what it stores for a vector, whatever the number of lists."""
        return self.plan.factory.rpartition(",")[2] if self.plan.num_lists else self.plan.factory

    def smallest(self, k: int, num_candidates: int) -> int:
        """Give the dial's smallest sensible value.

        A graph is searched for k results at least. The lists that are read must hold some times k
        candidates in the mean: where they hold too few, exact search answers, which is slow.
        """
        if self.dial == "ef_search":
            return min(k, self.largest)
        wanted = _CANDIDATES_PER_RESULT * k * self.plan.num_lists / num_candidates
        return min(max(math.ceil(wanted), 1), self.largest)


@dataclass(frozen=True)
class Skipped:
    """An index that is not tried.

    Attributes:
        kind: As in the settings.
        reason: In words.
    """

    kind: str
    reason: str


def list_counts(settings: IndexSettings, num_candidates: int) -> tuple[int, ...]:
    """Give the numbers of lists to try, rising: the one that is set, or 1 to 16 times sqrt(C).

    Args:
        settings: Whose `num_lists` is the only one where it is set.
        num_candidates: C, at least 1; each list has 39 of them at least.
    """
    if settings.num_lists is not None:
        return (settings.num_lists,)
    most = max(num_candidates // _TRAINING_PER_CENTROID, 1)
    usual = (round(times * math.sqrt(num_candidates)) for times in _LISTS_PER_ROOT)
    return tuple(sorted({min(count, most) for count in usual}))


def list_families(
    settings: IndexSettings,
    num_candidates: int,
    dim: int,
    *,
    num_lists: int,
    most_bytes: float = math.inf,
) -> Iterator[Family | Skipped]:
    """Give the kinds of index with lists, or why one is left out.

    Args:
        settings: Build parameters that hold for all: `num_codes`, `code_bits`.
        num_candidates: C, at least 1.
        dim: D.
        num_lists: Of each.
        most_bytes: Memory for the index and the stored vectors together.
    """
    settings = replace(settings, factory="", num_lists=num_lists, num_probes=None)
    for kind in _WITH_LISTS:
        for codes in _codes(settings, dim) if kind == "ivf_pq_fast" else (None,):
            chosen = replace(settings, kind=kind, num_codes=codes)
            yield _family_or_reason(chosen, num_candidates, dim, most_bytes)


def graph_families(
    settings: IndexSettings, num_candidates: int, dim: int, *, most_bytes: float = math.inf
) -> Iterator[Family | Skipped]:
    """Give the kinds of graph, or why one is left out; see `list_families`.

    Args:
        settings: Build parameters that hold for all: `m`, `ef_construction`, `reproducible`.
        num_candidates: C, at least 1.
        dim: D.
        most_bytes: Memory for the index and the stored vectors together.
    """
    for kind in GRAPH_KINDS:
        chosen = replace(settings, kind=kind, factory="")
        yield _family_or_reason(chosen, num_candidates, dim, most_bytes)


def _codes(settings: IndexSettings, dim: int) -> tuple[int, ...]:
    """Give the numbers of parts of a vector, each with a code, most first."""
    if settings.num_codes is not None:
        return (settings.num_codes,)
    parts = {
        max(n for n in range(1, max(dim // width, 1) + 1) if dim % n == 0)
        for width in _DIMENSIONS_A_CODE
    }
    return tuple(sorted(parts, reverse=True))


def _family_or_reason(
    settings: IndexSettings, num_candidates: int, dim: int, most_bytes: float
) -> Family | Skipped:
    kind = settings.kind
    try:
        plan = plan_index(settings, num_candidates=num_candidates, dim=dim, quiet=True)
    except ConfigError as error:
        return Skipped(kind, str(error))
    needed = held_bytes(plan, settings, num_candidates, dim)
    vectors = 4 * num_candidates * dim
    advised = _TRAINING_PER_CENTROID * plan.num_training
    if plan.kind == "flat":
        return Skipped(kind, f"{num_candidates:,} items are too few to train it")
    if plan.num_training > 1 and num_candidates < advised:
        return Skipped(kind, f"trained by {num_candidates:,} items, where it needs {advised:,}")
    if vectors + needed > most_bytes:
        return Skipped(
            kind,
            f"{(vectors + needed) / 1e9:.3g} GB with the item vectors, more than the "
            f"{most_bytes / 1e9:.3g} GB allowed",
        )
    return _family(settings, plan, needed, num_candidates)


def _family(settings: IndexSettings, plan: IndexPlan, needed: int, num_candidates: int) -> Family:
    is_graph = plan.kind in GRAPH_KINDS
    return Family(
        settings,
        plan,
        needed,
        dial="ef_search" if is_graph else "num_probes",
        largest=min(_BROADEST_GRAPH_SEARCH, num_candidates) if is_graph else plan.num_lists,
        overfetch=_OVERFETCH if plan.kind == "ivf_pq_fast" else (settings.overfetch,),
    )


def held_bytes(plan: IndexPlan, settings: IndexSettings, num_candidates: int, dim: int) -> int:
    """Estimate what an index holds beside the stored vectors, which flat and HNSW read there."""
    shared = 4 * num_candidates * dim if plan.kind in ("flat", "hnsw") else 0
    return index_bytes(plan, decided(settings, plan), num_candidates, dim) - shared


def index_bytes(plan: IndexPlan, settings: IndexSettings, num_candidates: int, dim: int) -> int:
    """Estimate the memory of an index, beside the stored vectors, within some percent."""
    if plan.kind in GRAPH_KINDS:
        m = settings.m
        links = 4 * (2 * m + m / (m - 1)) + 8 + 4  # the lowest layer, those above, offset, level
        return round(num_candidates * (links + (dim if plan.kind == "hnsw_sq8" else 4 * dim)))
    if plan.kind == "scann":
        codes = math.ceil(dim / plan.dims_a_code) / 2
        return round(num_candidates * (2 * dim + codes + 4) + 4 * plan.num_lists * dim)
    if plan.kind not in LIST_KINDS:
        return 4 * num_candidates * dim
    return round(num_candidates * (8 + _code_bytes(plan, dim)) + 4 * plan.num_lists * dim)


def _code_bytes(plan: IndexPlan, dim: int) -> float:
    whole = {"ivf_flat": 4 * dim, "ivf_fp16": 2 * dim, "ivf_sq8": dim}
    if plan.kind in whole:
        return whole[plan.kind]
    parts, bits = plan.factory.rpartition("PQ")[2].removesuffix("fs").split("x")
    return math.ceil(int(parts) * int(bits) / 8)


def decided(settings: IndexSettings, plan: IndexPlan) -> IndexSettings:
    """Give the settings with the neighbours that the plan has, wherever they were set."""
    if plan.kind not in GRAPH_KINDS:
        return settings
    neighbours = plan.factory.removeprefix("HNSW").partition(",")[0]
    return replace(settings, kind=plan.kind, factory="", m=int(neighbours))
