"""What a graph of a part of the candidates tells of a graph of all: how long, and how fast.

Dimensions: C candidates, D embedding width.
"""

import math
import time
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from recsys.index.asked import Asked
from recsys.index.exact import ExactIndex
from recsys.index.faiss_index import FaissIndex
from recsys.index.goals import BEST, NEW, Goal, RecallGoal
from recsys.index.race import race
from recsys.index.settings import IndexSettings
from recsys.index.tuning_result import TuningTarget

_PART = 5000  # candidates


@dataclass(frozen=True)
class GraphProbe:
    """A graph of some of the candidates.

    Attributes:
        graph: It; None where the candidates are so few that all are soon built.
        seconds: That it took.
        num_candidates: C.
    """

    graph: FaissIndex | None
    seconds: float
    num_candidates: int

    @classmethod
    def of(cls, vectors: NDArray[np.float32], settings: IndexSettings) -> Self:
        """Build a graph of 5,000 of the vectors [C, D] where they are more than 20,000."""
        if len(vectors) <= 4 * _PART:
            return cls(None, 0.0, len(vectors))
        some = np.ascontiguousarray(vectors[:: len(vectors) // _PART])
        started = time.monotonic()
        graph = FaissIndex.build(some, settings)
        return cls(graph, time.monotonic() - started, len(vectors))

    def too_long(self, most_minutes: float) -> str:
        """Say why the whole graph would take too long to build; else "".

        A vector's place is found in steps that grow as the logarithm of the graph's size.
        """
        if self.graph is None:
            return ""
        size, part = self.num_candidates, self.graph.num_candidates
        minutes = self.seconds * size * math.log(size) / (part * math.log(part)) / 60
        if minutes <= most_minutes:
            return ""
        return (
            f"building it would take about {minutes:.3g} minutes, more than the "
            f"{most_minutes:.3g} of index.build_minutes"
        )

    def too_slow(
        self,
        best: FaissIndex | ExactIndex,
        best_name: str,
        asked: Asked,
        target: TuningTarget,
        goal: Goal,
    ) -> str:
        """Say that even this part is searched too slowly at the least breadth; else "".

        A larger graph takes more steps, of which fewer are in a cache.
        """
        if self.graph is None:
            return ""
        small = self.graph.with_dial(ef_search=min(asked.k, self.graph.num_candidates))
        times = race(
            {BEST: best, NEW: small},
            asked,
            at_once=target.queries_at_once,
            threads=target.search_threads,
        )
        part, milliseconds = self.graph.num_candidates, times.milliseconds(NEW)
        if not goal.allows_time(milliseconds):
            return (
                f"a graph of {part:,} items already takes {milliseconds:.3g} ms a block of "
                f"{times.queries}, more than index.latency_ms"
            )
        if isinstance(goal, RecallGoal) and times.speedup(NEW, BEST) < 1:
            return f"a graph of {part:,} items is already slower than {best_name}"
        return ""
