"""The table of the index benchmark: recall, speed, memory and build time of each index.

Dimensions: Q queries.
"""

import statistics
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.benchmark.index_asked import Search
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.result import NamedTable, Ratio, time_ratio
from recsys.metrics import bootstrap_interval

HAND_SET = ("faiss", "hnswlib", "usearch")  # the best of them is what index=auto must come up to
_HEADINGS = ("index", "recall", "queries/s", "index=auto / it", "memory", "build")


@dataclass(frozen=True)
class Entry:
    """An index that is ready to be timed.

    Attributes:
        name: With its dial.
        library: `auto`, `own`, or the library of a peer.
        search: At that dial.
        num_bytes: Of memory.
        build_seconds: With all threads.
    """

    name: str
    library: str
    search: Search
    num_bytes: int
    build_seconds: float


@dataclass(frozen=True)
class Measured:
    """What was measured of one.

    Attributes:
        entry: The index.
        recalls: [Q], index recall of each query that was timed.
        times: Of all Q queries, a round each.
    """

    entry: Entry
    recalls: NDArray[np.float64]
    times: Measurement


def ratios(measured: list[Measured]) -> tuple[Ratio, ...]:
    """Compare index=auto, the first, with the best that was set by hand, and with ScaNN."""
    best = best_by_hand(measured)
    named = {one.entry.name: one.times for one in measured}
    others = [one for one in measured if one is best or one.entry.library == "scann"]
    return tuple(time_ratio(named, measured[0].entry.name, one.entry.name) for one in others)


def best_by_hand(measured: list[Measured]) -> Measured | None:
    """Give the fastest of FAISS, hnswlib and usearch; None where none met the target."""
    by_hand = [one for one in measured if one.entry.library in HAND_SET]
    return max(by_hand, key=lambda one: one.times.rate, default=None)


def index_table(measured: list[Measured]) -> NamedTable:
    """Lay out a row an index, and a last one for index=auto against the best set by hand."""
    auto, best = measured[0], best_by_hand(measured)
    rows = [_row(auto, one) for one in measured]
    if best is not None:
        against = f"index=auto against the best of FAISS, hnswlib and usearch: {best.entry.name}"
        rows.append((against, "", "", _speed(auto, best), "", ""))
    return NamedTable("at the same recall", _HEADINGS, tuple(rows))


def _row(auto: Measured, one: Measured) -> tuple[str, ...]:
    interval, entry = bootstrap_interval(one.recalls, 0), one.entry
    rates = [one.times.units / seconds for seconds in one.times.seconds]
    return (
        entry.name,
        f"{one.recalls.mean():.4f} [{interval.low:.4f}, {interval.high:.4f}]",
        f"{one.times.rate:,.0f} ({min(rates):,.0f} to {max(rates):,.0f})",
        "" if one is auto else _speed(auto, one),
        f"{entry.num_bytes / 1e6:,.0f} MB" if entry.num_bytes else "",
        f"{entry.build_seconds:,.1f} s" if entry.build_seconds else "",
    )


def _speed(auto: Measured, other: Measured) -> str:
    """Give how many times as fast index=auto is: the median of the rounds' ratios, their ends."""
    pairs = zip(other.times.seconds, auto.times.seconds, strict=True)
    faster = [theirs / ours for theirs, ours in pairs]
    return f"{statistics.median(faster):.2f} ({min(faster):.2f} to {max(faster):.2f})"
