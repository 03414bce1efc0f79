"""The fastest index that finds enough of the exact result, by measurement on real queries.

Dimensions: C candidates, D embedding width, Q queries, M interests of a query.
"""

import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Progress, Ragged, make_numpy_generator
from recsys.index.dial import Setting, find_setting
from recsys.index.exact import ExactIndex
from recsys.index.faiss_index import FaissIndex
from recsys.index.families import Family, Skipped, families
from recsys.index.race import race
from recsys.index.settings import LIST_KINDS, IndexSettings
from recsys.index.tuning_result import Trial, Tuning, TuningTarget
from recsys.metrics import bootstrap_interval, overlap_at_k

log = logging.getLogger(__name__)
_EXACT, _BEST, _NEW = "exact", "best", "new"
_FEWEST_QUERIES = 20
_PART = 5000  # candidates of which a graph is built to tell how long all would take


def tune_index(
    vectors: NDArray[np.float32],
    queries: NDArray[np.float32],
    settings: IndexSettings,
    target: TuningTarget,
    *,
    seed: int,
) -> tuple[FaissIndex, Tuning]:
    """Build every kind of index, set its breadth for the target, and keep the fastest.

    Half of the queries set the breadth of each (`num_probes`, `ef_search`, `overfetch`), by
    bisection; the others verify it and time it in turn with exact search and the best so far, with
    one thread. No more than two approximate indexes are in memory at once. Exact search stays where
    nothing that meets the target is faster, and, unmeasured, below `target.exact_below` candidates.

    Which index wins is a matter of times, so two runs may choose differently; its hits are as
    reproducible as those of any other index of its settings.

    Args:
        vectors: [C, D], float32, finite, at least one.
        queries: [Q, D] or [Q, M, D], float32; query vectors that training did not see.
        settings: Build parameters that hold for every kind; its kind and breadths are replaced.
        target: What the index must do.
        seed: Of the choice of queries.

    Returns:
        The index, and what was measured.

    Raises:
        ArgumentError: A vector is not finite, or there is none.
    """
    if len(vectors) < target.exact_below or len(queries) < _FEWEST_QUERIES:
        return _unmeasured(vectors, queries, settings, target)
    rng = make_numpy_generator(seed, "tune index")
    chosen = rng.permutation(len(queries))[: target.num_queries]
    half = len(chosen) // 2
    exact = ExactIndex(vectors)
    tuner = _Tuner(
        exact,
        _Asked.of(queries[chosen[:half]], exact, target.target_k),
        _Asked.of(queries[chosen[half:]], exact, target.target_k),
        target,
        FaissIndex.build(vectors, _as_kind(settings, "flat")),
    )
    tuner.add_exact()
    most = math.inf if target.memory_gb is None else target.memory_gb * 1e9
    tried = list(families(settings, *vectors.shape, most_bytes=most))
    with Progress("tuning the index", len(tried), "kinds") as progress:
        for family in tried:
            tuner.add(family)
            progress.advance(1, tuner.best_name)
    return tuner.end()


@dataclass(frozen=True)
class _Asked:
    """Queries with their exact results."""

    queries: NDArray[np.float32]
    truth: Ragged
    k: int

    @classmethod
    def of(cls, queries: NDArray[np.float32], exact: ExactIndex, k: int) -> "_Asked":
        queries = np.ascontiguousarray(queries)
        return cls(queries, exact.search(queries, k).lists, k)

    def recalls(self, index: FaissIndex) -> NDArray[np.float64]:
        """Give the index recall of each query: [Q]."""
        return overlap_at_k(index.search(self.queries, self.k).lists, self.truth, self.k)


@dataclass
class _Tuner:
    """The best index so far, and every trial."""

    exact: ExactIndex
    tuned_on: _Asked
    verified_on: _Asked
    target: TuningTarget
    best: FaissIndex
    best_trial: int = 0
    trials: list[Trial] = field(default_factory=list)
    centroids: NDArray[np.float32] | None = None

    @property
    def best_name(self) -> str:
        """Name the best so far."""
        return self.trials[self.best_trial].name

    def add_exact(self) -> None:
        """Time exact search, which always meets the target."""
        asked, size = self.verified_on, 4 * self.exact.vectors.size
        times = race({_EXACT: self.exact}, asked.queries, asked.k, at_once=self._at_once)
        self.trials.append(
            Trial(
                kind="flat", factory="Flat", dial={}, outcome="chosen", recall=1.0, recall_low=1.0,
                recall_high=1.0, queries_per_second=times.rate(_EXACT), speedup=1.0,
                index_bytes=size, build_seconds=0.0,
            )
        )  # fmt: skip

    def add(self, family: Family | Skipped) -> None:
        """Build an index, set its breadth, and time it if it meets the target."""
        reason = family.reason if isinstance(family, Skipped) else self._too_long(family)
        if isinstance(family, Skipped) or reason:
            trial = Trial(kind=family.kind, dial={}, outcome="not tried", reason=reason)
            self.trials.append(trial)
            return
        started = time.monotonic()
        has_lists = family.plan.kind in LIST_KINDS
        index = FaissIndex.build(
            self.exact.vectors,
            family.settings,
            centroids=self.centroids if has_lists else None,
        )
        seconds = time.monotonic() - started
        if has_lists and self.centroids is None:
            self.centroids = index.inner.quantizer.reconstruct_n(0, family.plan.num_lists)
        before = 0.0
        for overfetch in family.overfetch:
            trial = self._try(family, index.with_dial(overfetch=overfetch), seconds)
            if trial.speedup is not None and trial.speedup < before:
                break  # to score more of them anew takes longer than to read fewer lists saves
            before = trial.speedup or 0.0

    def _too_long(self, family: Family) -> str:
        """Say why a graph would take too long to build, by what a part takes; else "".

        A vector's place in a graph is found in steps that grow as the logarithm of its size.
        """
        vectors, most = self.exact.vectors, self.target.build_minutes
        if family.dial != "ef_search" or len(vectors) <= 4 * _PART:
            return ""
        some = vectors[:: len(vectors) // _PART]
        started = time.monotonic()
        FaissIndex.build(some, family.settings)
        steps = [size * math.log(size) for size in (len(vectors), len(some))]
        minutes = (time.monotonic() - started) * steps[0] / steps[1] / 60
        if minutes <= most:
            return ""
        return (
            f"building it would take about {minutes:.3g} minutes, more than the {most:.3g} of "
            "index.build_minutes"
        )

    def _try(self, family: Family, index: FaissIndex, seconds: float) -> Trial:
        found = find_setting(
            lambda value: self.tuned_on.recalls(index.with_dial(**{family.dial: value})),
            self.target.target_recall,
            largest=family.largest,
            smallest=family.smallest(self.tuned_on.k, self.exact.num_candidates),
        )
        index = index.with_dial(**{family.dial: found.value})
        values = self.verified_on.recalls(index)
        interval = bootstrap_interval(values, 0)
        dial = {family.dial: found.value}
        if len(family.overfetch) > 1:
            dial["overfetch"] = index.settings.overfetch
        rate, speedup, outcome = self._time(index, found, float(values.mean()))
        trial = Trial(
            kind=family.plan.kind,
            factory=family.plan.factory,
            dial=dial,
            outcome=outcome,
            recall=float(values.mean()),
            recall_low=float(interval.low),
            recall_high=float(interval.high),
            queries_per_second=rate,
            speedup=speedup,
            index_bytes=family.index_bytes,
            build_seconds=seconds,
        )
        self.trials.append(trial)
        log.debug("%s: %s", trial.name, trial)
        if outcome == "chosen":
            self._take(index)
        return trial

    def _time(
        self, index: FaissIndex, found: Setting, recall: float
    ) -> tuple[float | None, float | None, str]:
        """Give queries a second, times exact search, and the outcome."""
        if not found.meets or recall < self.target.target_recall:
            return None, None, "below the target"
        asked = self.verified_on
        indexes: Mapping[str, FaissIndex | ExactIndex] = {_EXACT: self.exact, _NEW: index}
        if self.best.kind != "flat":
            indexes = {**indexes, _BEST: self.best}
        times = race(indexes, asked.queries, asked.k, at_once=self._at_once)
        is_faster = times.speedup(_NEW, _BEST if _BEST in indexes else _EXACT) > 1
        outcome = "chosen" if is_faster else "slower"
        return times.rate(_NEW), times.speedup(_NEW, _EXACT), outcome

    def _take(self, index: FaissIndex) -> None:
        self.trials[self.best_trial] = replace(self.trials[self.best_trial], outcome="slower")
        self.best, self.best_trial = index, len(self.trials) - 1

    @property
    def _at_once(self) -> int:
        return self.target.queries_at_once

    def end(self) -> tuple[FaissIndex, Tuning]:
        """Give the best index."""
        trial = self.trials[self.best_trial]
        about = (
            f"{trial.name}: index recall@{self.tuned_on.k} {trial.recall:.4f}, "
            f"{trial.queries_per_second:,.0f} queries/s with one thread, {trial.speedup:.1f} times "
            "exact search"
        )
        if self.best.kind == "flat":
            about = "exact search: no index that meets the target is faster"
        elif self.best.kind in LIST_KINDS:
            self.best.inner.nprobe = int(self.best.settings.num_probes or 1)
        return self.best, Tuning(
            self.target, self.trials, self.best.settings, about, len(self.verified_on.queries)
        )


def _as_kind(settings: IndexSettings, kind: str) -> IndexSettings:
    return replace(settings, kind=kind, factory="")


def _unmeasured(
    vectors: NDArray[np.float32],
    queries: NDArray[np.float32],
    settings: IndexSettings,
    target: TuningTarget,
) -> tuple[FaissIndex, Tuning]:
    """Take exact search where there is nothing to win, or nothing to measure on."""
    about = f"exact search: fewer than {target.exact_below:,} items (index.exact_below)"
    if len(vectors) >= target.exact_below:
        about = f"exact search: {len(queries)} queries are too few to measure on"
        log.warning("index=auto takes %s; %d are needed", about, _FEWEST_QUERIES)
    index = FaissIndex.build(vectors, _as_kind(settings, "flat"))
    return index, Tuning(target, (), index.settings, about, 0)
