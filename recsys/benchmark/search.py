"""Exact search against FAISS, a plain product with its top k, and the product alone.

Dimensions: B queries, C candidates, D embedding width, k results asked for.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from recsys.benchmark.growth import Growth, at_least_two, growth_of
from recsys.benchmark.measure import time_alternately
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.resident_memory import resident_peak
from recsys.benchmark.result import BenchmarkResult, memory_ratio, time_ratio
from recsys.benchmark.search_jobs import (
    BARE,
    EXACT,
    EXCLUDING,
    FAISS,
    PLAIN,
    SearchInputs,
    multiply_and_cut,
    prepared_exact,
    prepared_flat,
    search_exactly,
    search_flat,
    search_jobs,
)

_GROWING = (EXACT, EXCLUDING, FAISS, BARE)
Measured = Mapping[str, Measurement]


def measure_search(
    *,
    catalogue_sizes: Sequence[int],
    dims: Sequence[int],
    ks: Sequence[int],
    dim: int,
    k: int,
    num_queries: int,
    num_excluded: int,
    rounds: int,
    seed: int,
) -> BenchmarkResult:
    """Time the search of many users at once.

    The floor is the product alone, in blocks that nobody looks at. Measurements are of the largest
    catalogue; growth with the dimension and with k is over the smallest.

    Args:
        catalogue_sizes: C; at least one.
        dims: D, over which growth is shown; fewer than two are passed over.
        ks: k, likewise.
        dim: D of all else.
        k: Results a user of all else.
        num_queries: B.
        num_excluded: Items that a user must not get, where some are left out.
        rounds: Rounds.
        seed: Of the made-up vectors.
    """
    sizes = sorted(set(catalogue_sizes))
    make = partial(SearchInputs.make, num_queries=num_queries, num_excluded=num_excluded, seed=seed)

    def measure(size: int, width: int, most: int, names: Sequence[str] | None) -> Measured:
        return _measure(make(size, width), most, names, rounds)

    by_size = {size: measure(size, dim, k, _GROWING) for size in sizes[:-1]}
    by_size[sizes[-1]] = largest = measure(sizes[-1], dim, k, None)
    by_dim = {width: measure(sizes[0], width, k, _GROWING) for width in at_least_two(dims)}
    by_k = {most: measure(sizes[0], dim, most, _GROWING) for most in at_least_two(ks)}
    largest = _with_peaks(largest, partial(make, sizes[-1], dim), k)
    return BenchmarkResult(
        "search",
        "top k of the whole catalogue; exact search scores anew in float64 and orders ties by row. "
        "Memory: beside the vectors. The dimension and k vary over the smallest catalogue",
        {
            "catalogue_sizes": sizes,
            "dim": dim,
            "k": k,
            "num_queries": num_queries,
            "num_excluded": num_excluded,
            "rounds": rounds,
        },
        largest,
        (
            *(time_ratio(largest, EXACT, other) for other in (FAISS, BARE, PLAIN)),
            time_ratio(largest, EXCLUDING, EXACT),
            memory_ratio(largest, EXACT, PLAIN),
        ),
        (
            *_growth("catalogue size", by_size),
            *_growth("dimension", by_dim),
            *_growth("k", by_k),
        ),
    )


def _measure(
    inputs: SearchInputs, k: int, names: Sequence[str] | None, rounds: int
) -> dict[str, Measurement]:
    """Time the jobs of those names, None: all, in turn."""
    jobs = search_jobs(inputs, k)
    if names is not None:
        jobs = {name: jobs[name] for name in names}
    seconds = time_alternately(f"search, {len(inputs.vectors):,} items", jobs, rounds=rounds)
    floor = statistics.median(seconds[BARE])
    return {
        name: Measurement(
            taken, len(inputs.queries), "users", floor_seconds=None if name == BARE else floor
        )
        for name, taken in seconds.items()
    }


def _with_peaks(
    measured: Measured, make: "partial[SearchInputs]", k: int
) -> dict[str, Measurement]:
    exact, flat = partial(prepared_exact, make), partial(prepared_flat, make)
    peaks = {
        EXACT: resident_peak(partial(search_exactly, k), prepare=exact),
        FAISS: resident_peak(partial(search_flat, k), prepare=flat),
        PLAIN: resident_peak(partial(multiply_and_cut, k=k), prepare=make),
    }
    return {name: replace(one, peak_bytes=peaks.get(name)) for name, one in measured.items()}


def _growth(axis: str, by_size: Mapping[int, Measured]) -> list[Growth]:
    if not by_size:
        return []
    return [
        growth_of(name, axis, {size: some[name] for size, some in by_size.items()})
        for name in _GROWING
    ]
