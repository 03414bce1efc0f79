"""The index that `index=auto` takes against others, each set for one target by hand.

Dimensions: C candidates, Q queries, D embedding width, k results asked for.
"""

import time
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from recsys.benchmark.index_asked import AskedQueries
from recsys.benchmark.index_peer import SetPeer
from recsys.benchmark.index_peers import GraphSettings, Peers, build_peers
from recsys.benchmark.index_table import Entry, Measured, index_table, ratios
from recsys.benchmark.measure import Job, time_alternately
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.result import BenchmarkResult
from recsys.data import make_clustered_vectors
from recsys.foundations import held_threads
from recsys.index import (
    ExactIndex,
    FaissIndex,
    IndexSettings,
    Tuning,
    TuningTarget,
    tune_index,
)

_LISTS_PER_ROOT = (1, 2, 4)  # of FAISS's lists, times sqrt(C)


@dataclass(frozen=True, kw_only=True)
class IndexCase:
    """What is searched, and what must be found.

    Attributes:
        catalogue_size: C.
        dim: D.
        num_clusters: Of the made-up vectors.
        spread: Of a cluster, against the distance of the centres.
        num_queries: That are timed; as many set the others by hand, twice as many tune.
        queries_at_once: Of a search.
        k: Results of each query.
        target_recall: Least mean index recall at k.
        build_minutes: As `index.build_minutes`.
        m: Neighbours in the graphs that are set by hand.
        ef_construction: Breadth of the search that places a vector there.
    """

    catalogue_size: int
    dim: int
    num_clusters: int
    spread: float
    num_queries: int
    queries_at_once: int
    k: int
    target_recall: float
    build_minutes: float
    m: int
    ef_construction: int

    @property
    def target(self) -> TuningTarget:
        """Give the same in the words of `index=auto`."""
        return TuningTarget(
            target_recall=self.target_recall,
            target_k=self.k,
            memory_gb=None,
            queries_at_once=self.queries_at_once,
            exact_below=0,
            num_queries=2 * self.num_queries,
            build_minutes=self.build_minutes,
        )


def measure_index(case: IndexCase, *, rounds: int, seed: int) -> BenchmarkResult:
    """Time lookups through the tuned index and through others that meet the same target.

    Tuned, set by hand and timed on three different sets of queries; one thread.

    Args:
        case: What is searched.
        rounds: Rounds.
        seed: Of the made-up vectors.
    """
    size, count = case.catalogue_size, case.num_queries
    vectors, drawn = make_clustered_vectors(
        size,
        4 * count,
        dim=case.dim,
        num_clusters=case.num_clusters,
        spread=case.spread,
        seed=seed,
    )
    tuning_queries, by_hand, timed = np.split(drawn, [2 * count, 3 * count])
    started = time.monotonic()
    index, tuning = tune_index(vectors, tuning_queries, IndexSettings(), case.target, seed=seed)
    minutes = (time.monotonic() - started) / 60
    exact = ExactIndex(vectors)
    ask = partial(_asked, exact, k=min(case.k, size), at_once=case.queries_at_once)
    peers = build_peers(
        vectors,
        ask(by_hand),
        target=case.target_recall,
        list_counts=_list_counts(size),
        graphs=GraphSettings(m=case.m, ef_construction=case.ef_construction),
    )
    asked = ask(timed)
    own = _own(index, tuning, exact, asked.k)
    measured = _measured(
        [*own, *(_entry(asked.k, peer) for peer in peers.found)], asked, rounds=rounds
    )
    return BenchmarkResult(
        "index",
        _about(peers, minutes),
        vars(case) | {"rounds": rounds},
        {one.entry.name: one.times for one in measured},
        ratios(measured),
        tables=(index_table(measured),),
    )


def _list_counts(size: int) -> tuple[int, ...]:
    """Give 1, 2 and 4 times sqrt(C), each once, where FAISS has vectors enough to train them."""
    most = max(size // 39, 1)
    return tuple(sorted({min(round(times * size**0.5), most) for times in _LISTS_PER_ROOT}))


def _asked(
    exact: ExactIndex, queries: NDArray[np.float32], *, k: int, at_once: int
) -> AskedQueries:
    return AskedQueries(queries, exact.search(queries, k).lists, k, at_once)


def _own(index: FaissIndex, tuning: Tuning, exact: ExactIndex, k: int) -> list[Entry]:
    """Give what this package searches, the tuned index first."""
    trial = tuning.chosen
    name = "" if trial is None else trial.name
    num_bytes = 0 if trial is None else trial.index_bytes or 0
    seconds = 0.0 if trial is None else trial.build_seconds or 0.0
    found = [Entry(f"index=auto: {name}", "auto", partial(_look_up, index, k), num_bytes, seconds)]
    if index.kind != "flat":
        alone = partial(_ask, index, k)
        found.append(
            Entry("the same in FAISS alone, not scored anew", "own", alone, num_bytes, seconds)
        )
        found.append(Entry("exact search", "own", partial(_look_up, exact, k), 0, 0.0))
    return found


def _entry(k: int, peer: SetPeer) -> Entry:
    built = peer.peer
    return Entry(
        peer.label, built.library, partial(peer.search, k), built.num_bytes, built.build_seconds
    )


def _measured(entries: list[Entry], asked: AskedQueries, *, rounds: int) -> list[Measured]:
    """Take the recall of each, and its times in turn with the others."""
    recalls = [asked.recalls(entry.search) for entry in entries]
    jobs: dict[str, Job] = {one.name: partial(asked.rows, one.search) for one in entries}
    with held_threads(1):
        seconds = time_alternately("of the indexes", jobs, rounds=rounds)
    units = len(asked.queries)
    return [
        Measured(entry, recall, Measurement(seconds[entry.name], units, "users"))
        for entry, recall in zip(entries, recalls, strict=True)
    ]


def _about(peers: Peers, minutes: float) -> str:
    return ". ".join(
        [
            "index=auto and others that meet the same index recall, with one thread; recall: on "
            "the queries that are timed, which tuned and set nothing. index=auto is a whole "
            "lookup, which scores anew and orders what FAISS finds; beside its memory stand the "
            f"item vectors. Its tuning took {minutes:.1f} minutes. Builds use all threads",
            *peers.notes,
        ]
    )


def _ask(index: FaissIndex, k: int, queries: NDArray[np.float32]) -> NDArray[np.int64]:
    rows: NDArray[np.int64] = index.inner.search(queries, k)[1]
    return rows


def _look_up(
    index: ExactIndex | FaissIndex, k: int, queries: NDArray[np.float32]
) -> NDArray[np.int64]:
    return index.search(queries, k).candidate_rows.reshape(len(queries), k)
