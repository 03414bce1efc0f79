"""What will be built: every number of an index decided, before anything is built.

Dimensions: C candidates, D embedding width.
"""

import logging
import math
from dataclasses import dataclass, replace

from recsys.foundations import ConfigError
from recsys.index.settings import GRAPH_KINDS, LIST_KINDS, IndexSettings, read_factory

log = logging.getLogger(__name__)
_ADVISED_PER_CENTROID = 39  # training vectors; what FAISS asks for


@dataclass(frozen=True, kw_only=True)
class IndexPlan:
    """What will be built: the settings with every number decided.

    Attributes:
        kind: As in the settings, but neither auto nor factory.
        factory: FAISS's words for it; of scann such words.
        num_training: Training vectors without which it cannot be built.
        num_lists: 0 without inverted lists.
        num_probes: 0 without inverted lists.
        dims_a_code: Dimensions that a code of scann stands for; 0 of other kinds.
    """

    kind: str
    factory: str
    num_training: int = 1
    num_lists: int = 0
    num_probes: int = 0
    dims_a_code: int = 0


def plan_index(
    settings: IndexSettings, *, num_candidates: int, dim: int, quiet: bool = False
) -> IndexPlan:
    """Decide every number of an index, before anything is built.

    Where the vectors are too few to train what was asked for, the plan is a flat index (which is
    exact, and fast at that size) and one warning names both counts.

    Args:
        settings: As the user gave them.
        num_candidates: C, at least 1.
        dim: D.
        quiet: Whether no warning is given.

    Raises:
        ConfigError: The settings are impossible for vectors of width D.
    """
    settings = _decide_kind(settings)
    plan = _PLANS[settings.kind](settings, num_candidates, dim)
    if num_candidates < plan.num_training:
        log.log(
            logging.DEBUG if quiet else logging.WARNING,
            "%d vectors are too few to train an index %s, which needs %d; a flat (exact) index "
            "is built instead.",
            num_candidates,
            plan.factory,
            plan.num_training,
        )
        return IndexPlan(kind="flat", factory="Flat")
    advised = _ADVISED_PER_CENTROID * plan.num_training
    if plan.num_training > 1 and num_candidates < advised:
        log.log(
            logging.DEBUG if quiet else logging.WARNING,
            "%d vectors train an index %s poorly; %d are advised.",
            num_candidates,
            plan.factory,
            advised,
        )
    return plan


def _decide_kind(settings: IndexSettings) -> IndexSettings:
    if settings.kind == "factory":
        return replace(settings, factory="", **read_factory(settings.factory))
    return replace(settings, kind="flat") if settings.kind == "auto" else settings


def _plan_flat(settings: IndexSettings, num_candidates: int, dim: int) -> IndexPlan:
    del settings, num_candidates, dim
    return IndexPlan(kind="flat", factory="Flat")


def _plan_graph(settings: IndexSettings, num_candidates: int, dim: int) -> IndexPlan:
    del num_candidates, dim
    stored = "SQ8" if settings.kind == "hnsw_sq8" else "Flat"
    return IndexPlan(kind=settings.kind, factory=f"HNSW{settings.m},{stored}")


def _plan_lists(settings: IndexSettings, num_candidates: int, dim: int) -> IndexPlan:
    lists, probes = _decide_lists(settings, num_candidates, a_root=4)
    code, needed = _code(settings, dim)
    return IndexPlan(
        kind=settings.kind,
        factory=f"IVF{lists},{code}",
        num_training=max(lists, needed),
        num_lists=lists,
        num_probes=probes,
    )


def _plan_scann(settings: IndexSettings, num_candidates: int, dim: int) -> IndexPlan:
    leaves, probes = _decide_lists(settings, num_candidates, a_root=2)
    dims_a_code = 2 if settings.num_codes is None else dim // _checked_parts(settings, dim)
    codes = math.ceil(dim / dims_a_code)  # the last of them may stand for fewer dimensions
    return IndexPlan(
        kind="scann",
        factory=f"ScaNN{leaves},AH{codes}x4",
        num_training=max(leaves, 16),
        num_lists=leaves,
        num_probes=probes,
        dims_a_code=dims_a_code,
    )


def _decide_lists(settings: IndexSettings, num_candidates: int, *, a_root: int) -> tuple[int, int]:
    """Give the number of lists, `a_root` for each square root of C unless set, and of probes."""
    lists, probes = settings.num_lists, settings.num_probes
    if lists is None:
        lists = max(1, min(round(a_root * math.sqrt(num_candidates)), num_candidates))
    if probes is None:
        probes = min(lists, max(8, math.ceil(lists / 8)))
    if probes > lists:
        raise ConfigError(
            f"index.num_probes must be at most the {lists} lists (index.num_lists), got {probes}."
        )
    return lists, probes


def _code(settings: IndexSettings, dim: int) -> tuple[str, int]:
    """Give FAISS's words for what a list stores, and how many vectors must train it."""
    if settings.kind in _STORED:
        return _STORED[settings.kind], 1
    parts = _checked_parts(settings, dim)
    if settings.kind == "ivf_pq_fast":
        return f"PQ{parts}x4fs", 16
    return f"PQ{parts}x{settings.code_bits}", 1 << settings.code_bits


def _checked_parts(settings: IndexSettings, dim: int) -> int:
    parts = settings.num_codes
    if parts is None:
        parts = max(n for n in range(1, max(dim // 2, 1) + 1) if dim % n == 0)
    if dim % parts:
        raise ConfigError(
            f"index.num_codes (the parts of a PQ code) must divide the {dim} dimensions of the "
            f"vectors, got {parts}."
        )
    return parts


_STORED = {"ivf_flat": "Flat", "ivf_sq8": "SQ8", "ivf_fp16": "SQfp16"}
_PLANS = {
    "flat": _plan_flat,
    **dict.fromkeys(GRAPH_KINDS, _plan_graph),
    **dict.fromkeys(LIST_KINDS, _plan_lists),
    "scann": _plan_scann,
}
