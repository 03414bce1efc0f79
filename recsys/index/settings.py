"""What kind of index to build, with which parameters; refused in one sentence if impossible.

Dimensions: C candidates, D embedding width.
"""

import logging
import math
import re
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from recsys.foundations import ConfigError, FormatError

log = logging.getLogger(__name__)

KINDS = ("auto", "flat", "hnsw", "ivf_flat", "ivf_pq", "factory")
_HNSW_FROM = 50_000  # candidates from which `auto` means hnsw
_ADVISED_PER_CENTROID = 39  # training vectors; what FAISS asks for
_LARGEST_M = 512
_FACTORY = re.compile(r"Flat|IVF(\d+),(?:Flat|PQ(\d+)(?:x(\d+))?)|HNSW(\d+)(?:,Flat)?", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class IndexSettings:
    """The settings of an index; None lets the number follow from the data.

    Attributes:
        kind: auto (flat below 50,000 candidates, else hnsw), flat, hnsw, ivf_flat, ivf_pq, or
            factory.
        m: Neighbours of a vector in an HNSW graph; from 2 to 512.
        ef_construction: Breadth of the search that places a vector in the graph.
        ef_search: Breadth of a search in the graph.
        num_lists: Inverted lists; None: 4 sqrt(C).
        num_probes: Lists that a search reads; None: an eighth of them, at least 8.
        num_codes: Parts of a vector that are quantised each; None: the largest divisor of D up to
            D / 2.
        code_bits: Bits of a part's code, from 4 to 12; 2**code_bits vectors train it.
        overfetch: Candidates that are scored anew for each result of an ivf_pq index.
        factory: With kind=factory, in FAISS's words: ``Flat``, ``HNSW32``, ``IVF1024,Flat`` or
            ``IVF1024,PQ16x8``; the numbers in it win over the settings above.
        reproducible: Build a graph with one thread, so that the same vectors give the same file;
            false uses all threads.
    """

    kind: str = "auto"
    m: int = 32
    ef_construction: int = 100
    ef_search: int = 128
    num_lists: int | None = None
    num_probes: int | None = None
    num_codes: int | None = None
    code_bits: int = 8
    overfetch: int = 8
    factory: str = ""
    reproducible: bool = True

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"index.kind must be one of {', '.join(KINDS)}, got {self.kind!r}.")
        for name in ("ef_construction", "ef_search", "overfetch"):
            _check_range(name, getattr(self, name), 1, None)
        for name in ("num_lists", "num_probes", "num_codes"):
            if getattr(self, name) is not None:
                _check_range(name, getattr(self, name), 1, None)
        _check_range("m", self.m, 2, _LARGEST_M)
        _check_range("code_bits", self.code_bits, 4, 12)
        if (self.kind == "factory") != (self.factory != ""):
            raise ConfigError(
                f"index.factory and index.kind=factory go together, got index.kind={self.kind} "
                f"and index.factory={self.factory!r}."
            )
        if self.factory:
            _read_factory(self.factory)  # refuses what it cannot read

    def to_json(self) -> dict[str, Any]:
        """Give the settings as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Read what `to_json` gave.

        Raises:
            FormatError: It is something else.
        """
        names = {field.name for field in fields(cls)}
        if not isinstance(value, dict) or set(value) != names:
            raise FormatError("The settings of the index are damaged: not the keys they should be.")
        try:
            return cls(**value)
        except (ConfigError, TypeError) as error:
            raise FormatError(f"The settings of the index are damaged: {error}") from error


@dataclass(frozen=True, kw_only=True)
class IndexPlan:
    """What will be built: the settings with every number decided.

    Attributes:
        kind: flat, hnsw, ivf_flat or ivf_pq.
        factory: FAISS's words for it.
        num_training: Training vectors without which it cannot be built.
        num_lists: 0 without inverted lists.
        num_probes: 0 without inverted lists.
    """

    kind: str
    factory: str
    num_training: int = 1
    num_lists: int = 0
    num_probes: int = 0


def plan_index(settings: IndexSettings, *, num_candidates: int, dim: int) -> IndexPlan:
    """Decide every number of an index, before anything is built.

    Where the vectors are too few to train what was asked for, the plan is a flat index (which is
    exact, and fast at that size) and one warning names both counts.

    Args:
        settings: As the user gave them.
        num_candidates: C, at least 1.
        dim: D.

    Raises:
        ConfigError: The settings are impossible for vectors of width D.
    """
    settings = _decide_kind(settings, num_candidates)
    plan = _PLANS[settings.kind](settings, num_candidates, dim)
    if num_candidates < plan.num_training:
        log.warning(
            "%d vectors are too few to train an index %s, which needs %d; a flat (exact) index "
            "is built instead.",
            num_candidates,
            plan.factory,
            plan.num_training,
        )
        return IndexPlan(kind="flat", factory="Flat")
    advised = _ADVISED_PER_CENTROID * plan.num_training
    if plan.num_training > 1 and num_candidates < advised:
        log.warning(
            "%d vectors train an index %s poorly; %d are advised.",
            num_candidates,
            plan.factory,
            advised,
        )
    return plan


def _decide_kind(settings: IndexSettings, num_candidates: int) -> IndexSettings:
    if settings.kind == "factory":
        return replace(settings, factory="", **_read_factory(settings.factory))
    if settings.kind == "auto":
        return replace(settings, kind="flat" if num_candidates < _HNSW_FROM else "hnsw")
    return settings


def _plan_flat(settings: IndexSettings, num_candidates: int, dim: int) -> IndexPlan:
    del settings, num_candidates, dim
    return IndexPlan(kind="flat", factory="Flat")


def _plan_hnsw(settings: IndexSettings, num_candidates: int, dim: int) -> IndexPlan:
    del num_candidates, dim
    return IndexPlan(kind="hnsw", factory=f"HNSW{settings.m},Flat")


def _plan_ivf(settings: IndexSettings, num_candidates: int, dim: int) -> IndexPlan:
    lists, probes = settings.num_lists, settings.num_probes
    if lists is None:
        lists = max(1, min(round(4 * math.sqrt(num_candidates)), num_candidates))
    if probes is None:
        probes = min(lists, max(8, math.ceil(lists / 8)))
    if probes > lists:
        raise ConfigError(
            f"index.num_probes must be at most the {lists} lists (index.num_lists), got {probes}."
        )
    codes, needed = "Flat", lists
    if settings.kind == "ivf_pq":
        codes, needed = _codes(settings, dim), max(lists, 1 << settings.code_bits)
    return IndexPlan(
        kind=settings.kind,
        factory=f"IVF{lists},{codes}",
        num_training=needed,
        num_lists=lists,
        num_probes=probes,
    )


def _codes(settings: IndexSettings, dim: int) -> str:
    codes = settings.num_codes
    if codes is None:
        codes = max(n for n in range(1, max(dim // 2, 1) + 1) if dim % n == 0)
    if dim % codes:
        raise ConfigError(
            f"index.num_codes (the parts of a PQ code) must divide the {dim} dimensions of the "
            f"vectors, got {codes}."
        )
    return f"PQ{codes}x{settings.code_bits}"


_PLANS = {"flat": _plan_flat, "hnsw": _plan_hnsw, "ivf_flat": _plan_ivf, "ivf_pq": _plan_ivf}


def _read_factory(text: str) -> dict[str, Any]:
    """Read FAISS's words for an index as settings; the grammar is checked here, not in C++."""
    found = _FACTORY.fullmatch(text)
    if found is None:
        raise ConfigError(
            f"index.factory must be Flat, HNSW<m>, IVF<lists>,Flat or IVF<lists>,PQ<codes>x<bits>, "
            f"got {text!r}."
        )
    lists, codes, bits, neighbours = found.groups()
    chosen: dict[str, Any] = {"kind": "flat"}
    if neighbours is not None:
        chosen = {"kind": "hnsw", "m": int(neighbours)}
    elif codes is not None:
        chosen = {"kind": "ivf_pq", "num_lists": int(lists), "num_codes": int(codes)}
        chosen["code_bits"] = 8 if bits is None else int(bits)
    elif lists is not None:
        chosen = {"kind": "ivf_flat", "num_lists": int(lists)}
    try:
        IndexSettings(**chosen)
    except ConfigError as error:
        raise ConfigError(f"index.factory={text} is impossible: {error}") from error
    return chosen


def _check_range(name: str, value: int, low: int, high: int | None) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"index.{name} must be a whole number, got {value!r}.")
    if value < low or (high is not None and value > high):
        wanted = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ConfigError(f"index.{name} must be {wanted}, got {value}.")
