"""The two goals of tuning: enough recall, then the fastest; quick enough, then the most recall."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from recsys.index.asked import Asked
from recsys.index.dial import Setting, find_largest, find_setting
from recsys.index.faiss_index import FaissIndex
from recsys.index.race import Times, race
from recsys.index.tuning_result import TuningTarget

EXACT, BEST, NEW = "exact", "best", "new"
_SHARE_OF_BUDGET = 0.9  # that a dial may use, so that other queries stay within it too
_DIAL_ROUNDS = 9
Turn = Callable[[int], FaissIndex]
"""From a value of the dial to the index at that breadth."""


class Goal(Protocol):
    """What decides between indexes."""

    def set_dial(self, turn: Turn, asked: Asked, *, smallest: int, largest: int) -> Setting:
        """Find the value of the dial."""
        ...

    def allows_recall(self, recall: float) -> bool:
        """Tell whether an index of that recall may be taken."""
        ...

    def allows_time(self, milliseconds: float) -> bool:
        """Tell whether an index of that time for a block of queries may be taken."""
        ...

    def score(self, recall: float, speedup: float) -> float:
        """Give what is to be as large as possible; speedup: times exact search."""
        ...

    def is_better(self, times: Times, recall: float, best_recall: float) -> bool:
        """Tell whether NEW replaces BEST, or EXACT where there is no BEST."""
        ...


@dataclass(frozen=True)
class RecallGoal:
    """The fastest of those that find enough.

    Attributes:
        target: What the index must do.
    """

    target: TuningTarget

    def set_dial(self, turn: Turn, asked: Asked, *, smallest: int, largest: int) -> Setting:
        """Find the smallest value that finds enough."""
        wanted = self.target.target_recall
        return find_setting(
            lambda value: asked.recalls(turn(value)), wanted, smallest=smallest, largest=largest
        )

    def allows_recall(self, recall: float) -> bool:
        """Tell whether it is enough."""
        return recall >= self.target.target_recall

    def allows_time(self, milliseconds: float) -> bool:
        """Allow any."""
        del milliseconds
        return True

    def score(self, recall: float, speedup: float) -> float:
        """Give the speed."""
        del recall
        return speedup

    def is_better(self, times: Times, recall: float, best_recall: float) -> bool:
        """Tell whether it is faster."""
        del recall, best_recall
        return times.speedup(NEW, BEST if BEST in times.seconds else EXACT) > 1


@dataclass(frozen=True)
class LatencyGoal:
    """The most recall of those that are quick enough.

    Attributes:
        target: What the index must do.
        latency_ms: Most milliseconds of a block of queries, in the median.
    """

    target: TuningTarget
    latency_ms: float

    def set_dial(self, turn: Turn, asked: Asked, *, smallest: int, largest: int) -> Setting:
        """Find the largest value that is quick enough."""
        most = _SHARE_OF_BUDGET * self.latency_ms

        def fits(value: int) -> bool:
            times = race(
                {NEW: turn(value)}, asked, at_once=self.target.queries_at_once,
                threads=self.target.search_threads, most=_DIAL_ROUNDS,
            )  # fmt: skip
            return times.milliseconds(NEW) <= most

        value = find_largest(fits, smallest=smallest, largest=largest)
        recall = float(asked.recalls(turn(value or smallest)).mean())
        return Setting(value or smallest, recall, value is not None)

    def allows_recall(self, recall: float) -> bool:
        """Allow any."""
        del recall
        return True

    def allows_time(self, milliseconds: float) -> bool:
        """Tell whether it is quick enough."""
        return milliseconds <= self.latency_ms

    def score(self, recall: float, speedup: float) -> float:
        """Give the recall."""
        del speedup
        return recall

    def is_better(self, times: Times, recall: float, best_recall: float) -> bool:
        """Tell whether it finds more, or as much in less time."""
        if BEST not in times.seconds:
            return True  # exact search is too slow where an index is tried
        return recall > best_recall or (recall == best_recall and times.speedup(NEW, BEST) > 1)


def goal_of(target: TuningTarget) -> Goal:
    """Give the goal that a target states."""
    if target.latency_ms is None:
        return RecallGoal(target)
    return LatencyGoal(target, target.latency_ms)
