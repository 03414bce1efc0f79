"""The best index for a target, by measurement on real queries.

Dimensions: C candidates, D embedding width, Q queries, M interests of a query.
"""

import logging
import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Progress, Ragged, make_numpy_generator
from recsys.index.asked import Asked
from recsys.index.exact import ExactIndex
from recsys.index.faiss_index import FaissIndex
from recsys.index.families import graph_families, list_counts, list_families
from recsys.index.goals import goal_of
from recsys.index.settings import IndexSettings
from recsys.index.tuner import NOISE, Tuner
from recsys.index.tuning_result import Tuning, TuningTarget

log = logging.getLogger(__name__)
_FEWEST_QUERIES = 20


def tune_index(
    vectors: NDArray[np.float32],
    queries: NDArray[np.float32],
    settings: IndexSettings,
    target: TuningTarget,
    *,
    seed: int,
    exclude: Ragged | None = None,
) -> tuple[FaissIndex, Tuning]:
    """Build every kind of index, set its breadth for the target, and keep the best.

    Half of the queries set the breadth of each (`num_probes`, `ef_search`, `overfetch`), by
    bisection; the others verify it and time it in turn with exact search and the best so far. No
    more than two approximate indexes are in memory at once. Numbers of lists are tried in rising
    order, until more lists are no longer better. Below `target.exact_below` candidates exact search
    is taken unmeasured.

    The fastest that finds `target_recall` is taken, and exact search where nothing that does is
    faster; with `target.latency_ms` the one that finds most within it, and where nothing is quick
    enough, one warning says so and `target_recall` decides.

    Which index wins is a matter of times, so two runs may choose differently; its hits are as
    reproducible as those of any other index of its settings.

    Args:
        vectors: [C, D], float32, finite, at least one.
        queries: [Q, D] or [Q, M, D], float32; query vectors that training did not see.
        settings: Build parameters that hold for every kind; its kind and breadths are replaced.
        target: What the index must do.
        seed: Of the choice of queries.
        exclude: Q lists of rows that a query must not get; None: nothing is left out.

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

    def ask(some: NDArray[np.int64]) -> Asked:
        left_out = None if exclude is None else exclude.take(some)
        return Asked.of(queries[some], left_out, exact, target.target_k)

    tuned_on, verified_on = ask(chosen[:half]), ask(chosen[half:])
    tuner = _run(exact, tuned_on, verified_on, settings, target)
    if tuner.has_choice:
        return tuner.end()
    about = tuner.nothing_quick()
    log.warning("index=auto: %s", about)
    again = replace(target, latency_ms=None)
    index, tuning = _run(exact, tuned_on, verified_on, settings, again).end()
    return index, replace(tuning, target=target, about=f"{about}: {tuning.about}")


def _run(
    exact: ExactIndex,
    tuned_on: Asked,
    verified_on: Asked,
    settings: IndexSettings,
    target: TuningTarget,
) -> Tuner:
    """Try all that may be the best."""
    vectors = exact.vectors
    flat = FaissIndex.build(vectors, _as_kind(settings, "flat"))
    tuner = Tuner(exact, tuned_on, verified_on, target, goal_of(target), flat)
    most = math.inf if target.memory_gb is None else target.memory_gb * 1e9
    if tuner.add_exact() and target.latency_ms is not None:
        return tuner  # nothing finds more
    counts, before = list_counts(settings, len(vectors)), 0.0
    with Progress("tuning the index", len(counts) + 1, "steps") as progress:
        for count in counts:
            kinds = list_families(settings, *vectors.shape, num_lists=count, most_bytes=most)
            score = tuner.add_lists(list(kinds))
            progress.advance(1, tuner.best_name)
            if score < NOISE * before:
                break
            before = max(score, before)
        for family in graph_families(settings, *vectors.shape, most_bytes=most):
            tuner.add_graph(family)
        progress.advance(1, tuner.best_name)
    return tuner


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
