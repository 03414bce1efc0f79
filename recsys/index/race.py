"""Two or more indexes timed in turn on the same queries."""

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recsys.foundations import held_threads
from recsys.index.asked import Asked
from recsys.index.hits import Index

_LEAST_ROUNDS = 7
_SECONDS = 2.0  # after which only the least rounds are run


@dataclass(frozen=True)
class Times:
    """The seconds of each round.

    Attributes:
        seconds: Name -> seconds of a block of queries, a round each.
        queries: Queries of a block.
    """

    seconds: Mapping[str, Sequence[float]]
    queries: int

    def rate(self, name: str) -> float:
        """Give the queries a second, by the median."""
        return self.queries / statistics.median(self.seconds[name])

    def milliseconds(self, name: str) -> float:
        """Give the milliseconds of a block of queries, the median."""
        return 1e3 * statistics.median(self.seconds[name])

    def speedup(self, name: str, other: str) -> float:
        """Give how many times faster `name` is than `other`: the median of the rounds' ratios."""
        pairs = zip(self.seconds[name], self.seconds[other], strict=True)
        return statistics.median(theirs / ours for ours, theirs in pairs)


def race(
    indexes: Mapping[str, Index], asked: Asked, *, at_once: int, threads: int, most: int = 41
) -> Times:
    """Time searches of a block of queries, every index in turn on the same block.

    Blocks walk through the queries, so that caches hold no more than a server's would; every other
    round runs in the opposite order, and one round is not counted.

    Args:
        indexes: Name -> index; at least one.
        asked: Q queries, with what they exclude.
        at_once: Queries of a block; no more than Q are taken.
        threads: Of a search.
        most: Rounds, however short; at least 1.
    """
    total = len(asked.queries)
    at_once = min(at_once, total)
    seconds: dict[str, list[float]] = {name: [] for name in indexes}
    started = time.monotonic()
    with held_threads(threads):
        for turn in range(-1, most):
            if turn >= _LEAST_ROUNDS and time.monotonic() - started > _SECONDS:
                break
            queries, exclude = asked.block((turn + 1) * at_once % (total - at_once + 1), at_once)
            for name in list(indexes)[:: 1 if turn % 2 == 0 else -1]:
                before = time.perf_counter()
                indexes[name].search(queries, asked.k, exclude=exclude)
                if turn >= 0:
                    seconds[name].append(time.perf_counter() - before)
    return Times(seconds, at_once)
