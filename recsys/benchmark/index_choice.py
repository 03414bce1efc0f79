"""The index that `index=auto` takes against FAISS's own, each set for one target by hand.

Dimensions: C candidates, Q queries, D embedding width, k results asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.benchmark.measure import Job, time_alternately
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.result import BenchmarkResult, time_ratio
from recsys.data import make_clustered_vectors
from recsys.foundations import Ragged, held_threads
from recsys.index import (
    ExactIndex,
    FaissIndex,
    IndexSettings,
    Tuning,
    TuningTarget,
    find_setting,
    tune_index,
)
from recsys.metrics import overlap_at_k

Search = Callable[[NDArray[np.float32]], NDArray[np.int64]]
"""From queries [B, D] to rows [B, k]; -1 where there is none."""
_BY_HAND = {
    "faiss HNSW": (IndexSettings(kind="hnsw", m=16, ef_construction=100), "ef_search"),
    "faiss IVF-Flat": (IndexSettings(kind="ivf_flat"), "num_probes"),
    "faiss IVF-SQ8": (IndexSettings(kind="ivf_sq8"), "num_probes"),
}


@dataclass(frozen=True)
class _Asked:
    """Queries, and the exact best of each."""

    queries: NDArray[np.float32]
    best: Ragged
    k: int
    at_once: int

    def recalls(self, search: Search) -> NDArray[np.float64]:
        """Give the index recall of each query: [Q]."""
        rows = self.rows(search)
        owners, places = np.nonzero(rows >= 0)
        found = Ragged.from_pairs(owners, rows[owners, places], len(rows))
        return overlap_at_k(found, self.best, self.k)

    def rows(self, search: Search) -> NDArray[np.int64]:
        """Search block after block: [Q, k]."""
        starts = range(0, len(self.queries), self.at_once)
        return np.concatenate([search(self.queries[i : i + self.at_once]) for i in starts])


def measure_index(
    *,
    catalogue_size: int,
    dim: int,
    num_clusters: int,
    spread: float,
    num_queries: int,
    queries_at_once: int,
    k: int,
    target_recall: float,
    rounds: int,
    seed: int,
) -> BenchmarkResult:
    """Time lookups through the tuned index and through others that meet the same target.

    Tuned, set by hand and timed on three different sets of queries; one thread.

    Args:
        catalogue_size: C.
        dim: D.
        num_clusters: Of the made-up vectors.
        spread: Of a cluster, against the distance of the centres.
        num_queries: That are timed; as many set the others by hand, twice as many tune.
        queries_at_once: Of a search.
        k: Results of each query.
        target_recall: Least mean index recall at k.
        rounds: Rounds.
        seed: Of the made-up vectors.
    """
    vectors, drawn = make_clustered_vectors(
        catalogue_size,
        4 * num_queries,
        dim=dim,
        num_clusters=num_clusters,
        spread=spread,
        seed=seed,
    )
    tuning_queries, by_hand, timed = np.split(drawn, [2 * num_queries, 3 * num_queries])
    index, tuning = tune_index(
        vectors,
        tuning_queries,
        IndexSettings(),
        _target(target_recall, k, queries_at_once, len(tuning_queries)),
        seed=seed,
    )
    exact = ExactIndex(vectors)
    ask = partial(_Asked, k=k, at_once=queries_at_once)
    setting = ask(by_hand, exact.search(by_hand, k).lists)
    asked = ask(timed, exact.search(timed, k).lists)
    searches = _searches(index, tuning, exact, setting, target_recall)
    named = {f"{name}, recall {asked.recalls(job).mean():.4f}": job for name, job in searches}
    jobs: dict[str, Job] = {name: partial(asked.rows, job) for name, job in named.items()}
    with held_threads(1):
        seconds = time_alternately(f"index, {catalogue_size:,} items", jobs, rounds=rounds)
    measured = {name: Measurement(one, num_queries, "users") for name, one in seconds.items()}
    ours, *others = measured
    return BenchmarkResult(
        "index",
        f"index=auto and others that meet the same index recall@{k}, with one thread; recall: on "
        "the queries that are timed, which tuned and set nothing. index=auto is a whole lookup, "
        "which scores anew and orders what FAISS finds",
        {
            "catalogue_size": catalogue_size,
            "dim": dim,
            "num_clusters": num_clusters,
            "spread": spread,
            "target_recall": target_recall,
            "queries_at_once": queries_at_once,
            "rounds": rounds,
        },
        measured,
        tuple(time_ratio(measured, ours, other) for other in others),
    )


def _target(recall: float, k: int, at_once: int, num_queries: int) -> TuningTarget:
    return TuningTarget(
        target_recall=recall,
        target_k=k,
        memory_gb=None,
        queries_at_once=at_once,
        exact_below=0,
        num_queries=num_queries,
        build_minutes=60,
    )


def _searches(
    index: FaissIndex,
    tuning: Tuning,
    exact: ExactIndex,
    setting: _Asked,
    target: float,
) -> list[tuple[str, Search]]:
    """Name what is timed, the tuned index first."""
    vectors, k = exact.vectors, min(setting.k, exact.num_candidates)
    chosen = "" if tuning.chosen is None else tuning.chosen.name
    found: list[tuple[str, Search]] = [(f"index=auto: {chosen}", partial(_look_up, index, k))]
    if index.kind != "flat":
        found.append(("the same in FAISS alone, not scored anew", partial(_ask, index.inner, k)))
        found.append(("exact search", partial(_look_up, exact, k)))
    flat = FaissIndex.build(vectors, IndexSettings(kind="flat"))
    found.append(("faiss Flat", partial(_ask, flat.inner, k)))
    for name, (settings, dial) in _BY_HAND.items():
        other = FaissIndex.build(vectors, settings).inner
        value = _set_by_hand(other, dial, setting, target, k)
        found.append((f"{name} {dial}={value}", partial(_ask, other, k)))
    return found


def _set_by_hand(inner: Any, dial: str, setting: _Asked, target: float, k: int) -> int:
    """Set an index of FAISS for the target; give the value."""

    def turn(value: int) -> None:
        if dial == "ef_search":
            inner.hnsw.efSearch = value
        else:
            inner.nprobe = value

    def recalls(value: int) -> NDArray[np.float64]:
        turn(value)
        return setting.recalls(partial(_ask, inner, k))

    largest = int(inner.ntotal if dial == "ef_search" else inner.nlist)
    value = find_setting(recalls, target, largest=largest).value
    turn(value)
    return value


def _ask(inner: Any, k: int, queries: NDArray[np.float32]) -> NDArray[np.int64]:
    rows: NDArray[np.int64] = inner.search(queries, k)[1]
    return rows


def _look_up(index: ExactIndex | FaissIndex, k: int, queries: NDArray[np.float32]) -> Any:
    return index.search(queries, k).candidate_rows.reshape(len(queries), k)
