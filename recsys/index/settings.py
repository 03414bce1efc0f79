"""What kind of index is asked for, with which parameters; refused in one sentence if impossible.

Dimensions: C candidates, D embedding width.
"""

import re
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from recsys.foundations import ConfigError, FormatError

GRAPH_KINDS = ("hnsw", "hnsw_sq8")
LIST_KINDS = ("ivf_flat", "ivf_sq8", "ivf_fp16", "ivf_pq", "ivf_pq_fast")
KINDS = ("auto", "flat", *GRAPH_KINDS, *LIST_KINDS, "scann", "factory")
_LARGEST_M = 512
_FACTORY = re.compile(
    r"Flat|IVF(?P<lists>\d+),(?P<code>Flat|SQ8|SQfp16|PQ(?P<parts>\d+)(?:x(?P<bits>\d+(?:fs)?))?)"
    r"|HNSW(?P<neighbours>\d+)(?:,(?P<stored>Flat|SQ8))?",
    re.ASCII,
)
_KIND_OF_CODE = {"Flat": "ivf_flat", "SQ8": "ivf_sq8", "SQfp16": "ivf_fp16"}


@dataclass(frozen=True, kw_only=True)
class IndexSettings:
    """The settings of an index; None lets the number follow from the data.

    Attributes:
        kind: flat; hnsw, hnsw_sq8 (a graph); ivf_flat, ivf_sq8, ivf_fp16, ivf_pq, ivf_pq_fast
            (lists around centroids); scann (the package scann-core); factory; or auto, which
            `tune_index` replaces by one of FAISS's (built without it, it is flat).
        m: Neighbours of a vector in an HNSW graph; from 2 to 512.
        ef_construction: Breadth of the search that places a vector in the graph.
        ef_search: Breadth of a search in the graph.
        num_lists: Inverted lists; None: 4 sqrt(C). Of scann leaves; None: 2 sqrt(C).
        num_probes: Lists that a search reads; None: an eighth of them, at least 8.
        num_codes: Parts of a vector that are quantised each; None: the largest divisor of D up to
            D / 2.
        code_bits: Bits of a part's code, from 4 to 12; 2**code_bits vectors train it. Of
            ivf_pq_fast they are 4, whatever this says.
        overfetch: Candidates that are scored anew for each result of an ivf_pq, ivf_pq_fast or
            scann index.
        factory: With kind=factory, in FAISS's words: ``Flat``, ``HNSW32``, ``HNSW32,SQ8``,
            ``IVF1024,Flat`` (or ``SQ8``, ``SQfp16``, ``PQ16x8``, ``PQ16x4fs``); the numbers in it
            win over the settings above.
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
            read_factory(self.factory)  # refuses what it cannot read

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


def read_factory(text: str) -> dict[str, Any]:
    """Read FAISS's words for an index as settings; the grammar is checked here, not in C++."""
    found = _FACTORY.fullmatch(text)
    if found is None:
        raise ConfigError(
            f"index.factory must be Flat, HNSW<m>, HNSW<m>,SQ8, or IVF<lists>, followed by Flat, "
            f"SQ8, SQfp16, PQ<codes>x<bits> or PQ<codes>x4fs, got {text!r}."
        )
    chosen: dict[str, Any] = {"kind": "flat"}
    if found["neighbours"] is not None:
        kind = "hnsw_sq8" if found["stored"] == "SQ8" else "hnsw"
        chosen = {"kind": kind, "m": int(found["neighbours"])}
    elif found["parts"] is not None:
        chosen = {"num_lists": int(found["lists"]), "num_codes": int(found["parts"])}
        chosen |= _read_bits(found["bits"] or "8", text)
    elif found["lists"] is not None:
        chosen = {"kind": _KIND_OF_CODE[found["code"]], "num_lists": int(found["lists"])}
    try:
        IndexSettings(**chosen)
    except ConfigError as error:
        raise ConfigError(f"index.factory={text} is impossible: {error}") from error
    return chosen


def _read_bits(bits: str, text: str) -> dict[str, Any]:
    if not bits.endswith("fs"):
        return {"kind": "ivf_pq", "code_bits": int(bits)}
    if bits != "4fs":
        raise ConfigError(f"index.factory={text} is impossible: codes of a fast scan have 4 bits.")
    return {"kind": "ivf_pq_fast"}


def _check_range(name: str, value: int, low: int, high: int | None) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"index.{name} must be a whole number, got {value!r}.")
    if value < low or (high is not None and value > high):
        wanted = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ConfigError(f"index.{name} must be {wanted}, got {value}.")
