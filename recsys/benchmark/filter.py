"""A filter inside an index against scoring the allowed items alone, by how many are allowed.

Dimensions: B queries, C candidates, D embedding width, k results asked for.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from recsys.benchmark.growth import growth_of
from recsys.benchmark.measure import Job, time_alternately
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.result import BenchmarkResult, time_ratio
from recsys.foundations import make_numpy_generator
from recsys.index import FaissIndex, Hits, IndexSettings

_INSIDE, _SCORED = "inside the index", "allowed items scored"
_MOST_ALONE = 16  # queries that are also asked one at a time
_ITEMS_A_CENTRE = 100

Search = Callable[..., Hits]


def measure_filter(
    *,
    kind: str,
    catalogue_size: int,
    percents: Sequence[int],
    dim: int,
    k: int,
    num_queries: int,
    rounds: int,
    seed: int,
) -> BenchmarkResult:
    """Time both ways to honour a filter, for users one at a time and for all at once.

    Args:
        kind: Of the index: hnsw, ivf_flat or ivf_pq, with the settings they come with.
        catalogue_size: C.
        percents: Of the catalogue that are allowed, at random; at least one.
        dim: D.
        k: Results a user.
        num_queries: B of those at once.
        rounds: Rounds.
        seed: Of the made-up vectors, which lie around centres.
    """
    rng = make_numpy_generator(seed, "benchmark", "filter")
    centres = rng.standard_normal((max(catalogue_size // _ITEMS_A_CENTRE, 1), dim))
    vectors, queries = _around(centres, catalogue_size, rng), _around(centres, num_queries, rng)
    index = FaissIndex.build(vectors, IndexSettings(kind=kind))
    chances, measured = rng.random(catalogue_size), {}
    for percent in sorted(set(percents)):
        allowed = np.flatnonzero(chances < percent / 100)
        jobs = _jobs(index, queries, k, allowed)
        seconds = time_alternately(f"filter, {percent} %", jobs, rounds=rounds)
        alone = min(_MOST_ALONE, num_queries)
        measured[len(allowed)] = {
            name: Measurement(
                taken,
                alone if name.endswith("alone") else num_queries,
                "users",
                calls=alone if name.endswith("alone") else 1,
            )
            for name, taken in seconds.items()
        }
    widest = measured[max(measured)]
    return BenchmarkResult(
        "filter",
        "top k of the allowed items, by a search inside the index that looks as much further as "
        "the share asks, and by scoring all of them. Measurements are of the largest share",
        {
            "kind": kind,
            "catalogue_size": catalogue_size,
            "percents": sorted(set(percents)),
            "dim": dim,
            "k": k,
            "num_queries": num_queries,
            "rounds": rounds,
        },
        widest,
        tuple(
            time_ratio(widest, f"{_INSIDE}, {how}", f"{_SCORED}, {how}")
            for how in ("one alone", "all at once")
        ),
        tuple(
            growth_of(name, "allowed items", {n: some[name] for n, some in measured.items()})
            for name in widest
        ),
    )


def _around(
    centres: NDArray[np.float64], count: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    chosen = centres[rng.integers(0, len(centres), count)]
    return (chosen + 0.7 * rng.standard_normal(chosen.shape)).astype(np.float32)


def _jobs(
    index: FaissIndex, queries: NDArray[np.float32], k: int, allowed: NDArray[np.int64]
) -> dict[str, Job]:
    ways: dict[str, Search] = {_INSIDE: index.search_inside, _SCORED: index.exact.search}
    jobs: dict[str, Job] = {}
    for name, search in ways.items():
        found = partial(search, k=k, allowed=allowed)
        jobs[f"{name}, one alone"] = partial(_one_by_one, found, queries[:_MOST_ALONE])
        jobs[f"{name}, all at once"] = partial(found, queries)
    return jobs


def _one_by_one(search: Search, queries: NDArray[np.float32]) -> None:
    for number in range(len(queries)):
        search(queries[number : number + 1])
