"""What a feature is: how it is asked for, and what was learnt about it on the training rows."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from recsys.foundations import ArgumentError, check_choice

FEATURE_KINDS = ("categorical", "multi", "numeric", "bucket", "text", "vector")


@dataclass(frozen=True, kw_only=True)
class FeatureOptions:
    """How one column is to be encoded.

    Attributes:
        kind: "auto" infers it: text and truth values -> categorical; text with a `separator` and
            lists of text or integers -> multi; numbers and times -> numeric; lists of floats and
            lists of fixed size -> vector. "bucket" and "text" must be asked for.
        max_vocabulary: categorical, multi: values kept, the most frequent; None for all.
        min_count: categorical, multi: rarer values share row 0; at least 1.
        num_buckets: bucket: quantile buckets (None for 32); text: hash buckets (None for 32768).
        separator: multi: what stands between the values of one text, as in "Action|Drama".
    """

    kind: str = "auto"
    max_vocabulary: int | None = None
    min_count: int = 1
    num_buckets: int | None = None
    separator: str | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        check_choice("kind", self.kind, ("auto", *FEATURE_KINDS))
        for name in ("max_vocabulary", "min_count", "num_buckets"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ArgumentError(f"`{name}` must be at least 1, got {value}.")
        if self.separator == "":
            raise ArgumentError("`separator` must not be empty.")


@dataclass(frozen=True, kw_only=True)
class FeatureSpec:
    """What encoding and the towers need to know of one feature.

    Attributes:
        name: The column.
        kind: One of FEATURE_KINDS.
        size: categorical, multi, bucket: rows of the embedding table, row 0 being the unknown or
            missing value; text: hash buckets; vector: width; numeric: 1.
        values: categorical, multi: the value of rows 1, 2, ..., most frequent first.
        mean: numeric: of the training rows.
        scale: numeric: their standard deviation, or 1 where they are all equal.
        edges: bucket: rising; value x is in row ``1 + number of edges at or below x``.
        separator: multi given as text.
    """

    name: str
    kind: str
    size: int
    values: tuple[str, ...] = ()
    mean: float = 0.0
    scale: float = 1.0
    edges: tuple[float, ...] = ()
    separator: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Give plain values that `from_json` reads."""
        return asdict(self) | {"values": list(self.values), "edges": list(self.edges)}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "FeatureSpec":
        """Rebuild a spec from plain values."""
        values, edges = tuple(plain["values"]), tuple(plain["edges"])
        spec = cls(**{**plain, "values": values, "edges": edges})
        check_choice("kind", spec.kind, FEATURE_KINDS)
        return spec

    @cached_property
    def value_set(self) -> pa.LargeStringArray:
        """Give `values` as an Arrow array."""
        return pa.array(self.values, pa.large_string())
