"""One tuning: each index that is tried is set, verified, timed, and kept if it is the best so far.

Dimensions: C candidates, D embedding width.
"""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from recsys.index.asked import Asked
from recsys.index.centroids import find_centroids
from recsys.index.dial import Setting
from recsys.index.exact import ExactIndex
from recsys.index.faiss_index import FaissIndex
from recsys.index.families import Family, Skipped
from recsys.index.goals import BEST, EXACT, NEW, Goal, RecallGoal
from recsys.index.graph_probe import GraphProbe
from recsys.index.race import Times, race
from recsys.index.settings import LIST_KINDS
from recsys.index.tuning_result import Trial, Tuning, TuningTarget
from recsys.metrics import bootstrap_interval

log = logging.getLogger(__name__)
NOISE = 0.95  # a score below this share of another is taken to be worse, not mismeasured
_MORE_LISTS = 4  # times the fewest that find enough
_SLOWER_BY = 2.5  # than the best with as many lists: it is not tried with more lists


@dataclass
class Tuner:
    """The best index so far, and every trial.

    Attributes:
        exact: Exact search of the vectors.
        tuned_on: Queries that set dials.
        verified_on: Others, that tell the recall and the time.
        target: What the index must do.
        goal: The same as rules.
        best: The index that is taken so far.
        best_trial: Its place among the trials.
        trials: In the order they were made.
    """

    exact: ExactIndex
    tuned_on: Asked
    verified_on: Asked
    target: TuningTarget
    goal: Goal
    best: FaissIndex
    best_trial: int = 0
    trials: list[Trial] = field(default_factory=list)
    _centroids: tuple[NDArray[np.float32], float] | None = None  # with the seconds they took
    _probes: int = 0  # the fewest lists around these centroids that find enough; 0: not known
    _left: set[str] = field(default_factory=set)  # what is stored by kinds that are not tried on

    @property
    def best_name(self) -> str:
        """Name the best so far."""
        return self.trials[self.best_trial].name

    def add_exact(self) -> bool:
        """Time exact search, which finds all; tell whether the goal allows its time."""
        times = self._race({EXACT: self.exact})
        allowed = self.goal.allows_time(times.milliseconds(EXACT))
        self.trials.append(
            Trial(
                kind="flat", factory="Flat", dial={}, outcome="chosen" if allowed else "too slow",
                recall=1.0, recall_low=1.0, recall_high=1.0, queries_per_second=times.rate(EXACT),
                block_ms=times.milliseconds(EXACT), speedup=1.0,
                index_bytes=4 * self.exact.vectors.size, build_seconds=0.0,
            )
        )  # fmt: skip
        return allowed

    def skip(self, kind: str, reason: str) -> None:
        """Note that a kind is not tried, once."""
        if all(trial.kind != kind for trial in self.trials):
            trial = Trial(kind=kind, dial={}, outcome="not tried", reason=reason)
            self.trials.append(trial)

    def add_lists(self, families: list[Family | Skipped]) -> float:
        """Try the kinds with as many lists each; give the best score among them, else 0."""
        self._centroids, self._probes = None, 0
        scores: dict[str, float] = {}
        for family in families:
            if isinstance(family, Skipped):
                self.skip(family.kind, family.reason)
            elif family.stores not in self._left:
                scores[family.stores] = self._add(family)
        best = max(scores.values(), default=0.0)
        if self._seeks_recall:
            self._left |= {name for name, one in scores.items() if _SLOWER_BY * one < best}
        return best

    def add_graph(self, family: Family | Skipped) -> None:
        """Try a kind of graph, unless a graph of a part tells that it cannot be taken."""
        if isinstance(family, Skipped):
            self.skip(family.kind, family.reason)
            return
        best = self.exact if self.best.kind == "flat" else self.best
        probe = GraphProbe.of(self.exact.vectors, family.settings)
        reason = probe.too_long(self.target.build_minutes) or probe.too_slow(
            best, self.best_name, self.verified_on, self.target, self.goal
        )
        if reason:
            self.skip(family.kind, reason)
        else:
            self._add(family)

    def _add(self, family: Family) -> float:
        """Build an index and try every overfetch; give the best score among them, else 0."""
        centroids, seconds = self._centroids_for(family)
        started = time.monotonic()
        index = FaissIndex.build(self.exact.vectors, family.settings, centroids=centroids)
        seconds += time.monotonic() - started
        scores = [0.0]
        for overfetch in family.overfetch:
            score = self._try(family, index.with_dial(overfetch=overfetch), seconds)
            scores.append(score)
            if score < NOISE * max(scores) or (self._seeks_recall and not score):
                break  # to read more lists takes longer than to score fewer anew saves
        return max(scores)

    def _centroids_for(self, family: Family) -> tuple[NDArray[np.float32] | None, float]:
        """Give the centroids of the lists, found once, and the seconds that took."""
        if family.kind not in LIST_KINDS:
            return None, 0.0
        if self._centroids is None:
            started = time.monotonic()
            found = find_centroids(self.exact.vectors, family.plan.num_lists)
            self._centroids = found, time.monotonic() - started
        return self._centroids

    def _try(self, family: Family, index: FaissIndex, seconds: float) -> float:
        """Set the dial, verify, time and judge; give the score, 0 where it may not be taken."""
        smallest, largest = self._dial_range(family)
        found = self.goal.set_dial(
            lambda value: index.with_dial(**{family.dial: value}),
            self.tuned_on,
            smallest=smallest,
            largest=largest,
        )
        if family.kind in LIST_KINDS and found.meets:
            self._probes = min(self._probes or found.value, found.value)
        dial = {family.dial: found.value}
        index = index.with_dial(**dial)
        if len(family.overfetch) > 1:
            dial["overfetch"] = index.settings.overfetch
        values = self.verified_on.recalls(index)
        recall, interval = float(values.mean()), bootstrap_interval(values, 0)
        times, outcome = self._judge(index, found, recall)
        trial = Trial(
            kind=family.kind,
            factory=family.plan.factory,
            dial=dial,
            outcome=outcome,
            recall=recall,
            recall_low=float(interval.low),
            recall_high=float(interval.high),
            queries_per_second=None if times is None else times.rate(NEW),
            block_ms=None if times is None else times.milliseconds(NEW),
            speedup=None if times is None else times.speedup(NEW, EXACT),
            index_bytes=family.index_bytes,
            build_seconds=seconds,
        )
        self.trials.append(trial)
        log.debug("%s: %s", trial.name, trial)
        if outcome == "chosen":
            self._take(index)
        may = outcome not in ("below the target", "too slow")
        return self.goal.score(recall, trial.speedup or 0.0) if may else 0.0

    def _dial_range(self, family: Family) -> tuple[int, int]:
        """Give the values of the dial that are worth a try.

        Shorter vectors around the same centroids need no fewer lists than others did, and where
        four times as many are not enough, more would not be faster.
        """
        smallest = family.smallest(self.tuned_on.k, self.exact.num_candidates)
        if family.kind not in LIST_KINDS or not self._probes or not self._seeks_recall:
            return smallest, family.largest
        largest = min(_MORE_LISTS * self._probes, family.largest)
        return min(max(smallest, self._probes - 1), largest), largest

    @property
    def _seeks_recall(self) -> bool:
        return isinstance(self.goal, RecallGoal)

    def _judge(self, index: FaissIndex, found: Setting, recall: float) -> tuple[Times | None, str]:
        """Time an index that is set; give the times, where there are any, and the outcome."""
        if not self.goal.allows_recall(recall) or (self._seeks_recall and not found.meets):
            return None, "below the target"
        indexes: Mapping[str, FaissIndex | ExactIndex] = {EXACT: self.exact, NEW: index}
        if self.best.kind != "flat":
            indexes = {**indexes, BEST: self.best}
        times = self._race(indexes)
        if not self.goal.allows_time(times.milliseconds(NEW)):
            return times, "too slow"
        best_recall = self.trials[self.best_trial].recall or 0.0
        if self.goal.is_better(times, recall, best_recall):
            return times, "chosen"
        return times, self._lost

    @property
    def _lost(self) -> str:
        return "slower" if self._seeks_recall else "finds less"

    def _take(self, index: FaissIndex) -> None:
        before = self.trials[self.best_trial]
        if before.outcome == "chosen":
            self.trials[self.best_trial] = replace(before, outcome=self._lost)
        self.best, self.best_trial = index, len(self.trials) - 1

    def _race(self, indexes: Mapping[str, FaissIndex | ExactIndex]) -> Times:
        return race(
            indexes,
            self.verified_on,
            at_once=self.target.queries_at_once,
            threads=self.target.search_threads,
        )

    @property
    def has_choice(self) -> bool:
        """Tell whether anything may be taken."""
        return self.trials[self.best_trial].outcome == "chosen"

    def nothing_quick(self) -> str:
        """Say that no index is within the time, and which one comes nearest."""
        times = [trial.block_ms for trial in self.trials if trial.block_ms is not None]
        return (
            f"no index answers {self.target.queries_at_once} queries at once within "
            f"{self.target.latency_ms:g} ms (index.latency_ms), the quickest takes "
            f"{min(times):.3g} ms; index.target_recall decides"
        )

    def end(self) -> tuple[FaissIndex, Tuning]:
        """Give the best index."""
        trial = self.trials[self.best_trial]
        threads = self.target.search_threads
        about = (
            f"{trial.name}: index recall@{self.tuned_on.k} {trial.recall:.4f}, "
            f"{trial.queries_per_second:,.0f} queries/s with {threads} "
            f"{'thread' if threads == 1 else 'threads'}, {trial.speedup:.1f} times exact search"
        )
        if self.best.kind == "flat":
            about = "exact search: no index that meets the target is faster"
            if self.target.latency_ms is not None:
                about = (
                    f"exact search: a block of {self.target.queries_at_once} takes "
                    f"{trial.block_ms:.3g} ms, within index.latency_ms"
                )
        elif self.best.kind in LIST_KINDS:
            self.best.inner.nprobe = int(self.best.settings.num_probes or 1)
        return self.best, Tuning(
            self.target, self.trials, self.best.settings, about, len(self.verified_on.queries)
        )
