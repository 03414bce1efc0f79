"""An index that `index=auto` is compared with: built, turned to a breadth, searched.

Dimensions: C candidates, D embedding width, B queries, k results asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from recsys.benchmark.index_asked import AskedQueries
from recsys.benchmark.measure import time_alternately
from recsys.foundations import held_threads
from recsys.index import Setting, find_setting

Rows = NDArray[np.int64]
_BROADER = 4  # times as broad; a value of overfetch that needs more is not taken
_ROUNDS = 3  # that choose between values of the overfetch


@dataclass
class Peer:
    """Another index over the same vectors.

    Attributes:
        name: Library and kind.
        library: Library alone.
        dial: What its breadth is called there.
        largest: Its largest value.
        look_up: From queries [B, D], k, breadth and overfetch to rows [B, k]; -1 where there is
            none. Obeys the bound of threads.
        num_bytes: Of memory, the vectors that it keeps among it.
        build_seconds: With all threads.
        overfetch: Candidates that are scored exactly for each result; falling; each is tried while
            the next is faster.
        counts_candidates: Whether the breadth is a number of candidates, and so k at least.
    """

    name: str
    library: str
    dial: str
    largest: int
    look_up: Callable[[NDArray[np.float32], int, int, int], Rows]
    num_bytes: int
    build_seconds: float
    overfetch: tuple[int, ...] = (1,)
    counts_candidates: bool = False


@dataclass(frozen=True)
class SetPeer:
    """A peer, set for a target.

    Attributes:
        peer: The index.
        value: Of its dial.
        overfetch: As there.
        found: How the dial was set.
    """

    peer: Peer
    value: int
    overfetch: int
    found: Setting = field(repr=False)

    @property
    def label(self) -> str:
        """Name it with its dial."""
        more = f" overfetch={self.overfetch}" if len(self.peer.overfetch) > 1 else ""
        return f"{self.peer.name} {self.peer.dial}={self.value}{more}"

    def search(self, k: int, queries: NDArray[np.float32]) -> Rows:
        """Give the rows [B, k] of queries [B, D]."""
        return self.peer.look_up(queries, k, self.value, self.overfetch)


def set_peer(peer: Peer, asked: AskedQueries, target: float) -> SetPeer:
    """Find the smallest breadth that meets the target; of the values of overfetch the fastest.

    Args:
        peer: The index.
        asked: Queries that are used for nothing else.
        target: Least mean index recall, with the margin of `find_setting`.

    Returns:
        The setting; `found.meets` tells whether it meets the target.
    """
    smallest = min(asked.k, peer.largest) if peer.counts_candidates else 1
    within = (smallest, peer.largest)
    best = _at_overfetch(peer, peer.overfetch[0], within, asked, target)
    for overfetch in peer.overfetch[1:] if best.found.meets else ():
        within = best.value, min(_BROADER * best.value, peer.largest)
        one = _at_overfetch(peer, overfetch, within, asked, target)
        if not one.found.meets or not _is_faster(one, best, asked):
            break  # a broader search takes longer than to score fewer of them saves
        best = one
    return best


def _is_faster(one: SetPeer, other: SetPeer, asked: AskedQueries) -> bool:
    """Time two settings in turn, with one thread."""
    jobs = {
        name: partial(asked.rows, partial(each.search, asked.k))
        for name, each in (("one", one), ("other", other))
    }
    with held_threads(1):
        seconds = time_alternately(f"{one.peer.name}, overfetch", jobs, rounds=_ROUNDS)
    return min(seconds["one"]) < min(seconds["other"])


def _at_overfetch(
    peer: Peer, overfetch: int, within: tuple[int, int], asked: AskedQueries, target: float
) -> SetPeer:
    def recalls(value: int) -> NDArray[np.float64]:
        return asked.recalls(lambda queries: peer.look_up(queries, asked.k, value, overfetch))

    found = find_setting(recalls, target, smallest=within[0], largest=within[1])
    return SetPeer(peer, found.value, overfetch, found)
