"""Draws of candidates against torch's own and binary search, by size of the catalogue."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from recsys.benchmark.growth import Growth, growth_of
from recsys.benchmark.measure import Job, time_alternately
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.resident_memory import resident_peak
from recsys.benchmark.result import BenchmarkResult, time_ratio
from recsys.benchmark.sampler_jobs import (
    ALIAS,
    BARE,
    LOG_Q,
    MULTINOMIAL,
    ROWS,
    SEARCH,
    UPDATE,
    sampler_jobs,
)
from recsys.benchmark.synthetic import zipf_counts
from recsys.sampling import AliasTable, popularity_probabilities

ALPHA = 0.75
_AXIS = "catalogue size"
_BUILD = "alias table, built"
_BUILDS = 3  # rounds at most


def measure_sampler(
    *, catalogue_sizes: Sequence[int], num_draws: int, draws: int, rounds: int, seed: int
) -> BenchmarkResult:
    """Time draws by popularity, the log Q that goes with them, and what learns from a step.

    The floor of a table is one read of memory at a random place for each draw. Measurements are of
    the largest catalogue, growth is over all.

    Args:
        catalogue_sizes: Candidates, popular by Zipf's law; at least one size.
        num_draws: Candidates a draw, as one training step needs.
        draws: Draws a round.
        rounds: Rounds.
        seed: Of the draws.
    """
    sizes = sorted(set(catalogue_sizes))
    by_size = {size: _measure_size(size, num_draws, draws, rounds, seed) for size in sizes}
    largest = dict(by_size[sizes[-1]])
    peak = resident_peak(AliasTable, prepare=partial(_probabilities, sizes[-1]))
    largest[_BUILD] = replace(largest[_BUILD], peak_bytes=peak)
    others = [name for name in (SEARCH, MULTINOMIAL, ROWS, BARE) if name in largest]
    return BenchmarkResult(
        "sampler",
        "draws by popularity; what is built once is a line of its own, with its peak memory",
        {"catalogue_sizes": sizes, "num_draws": num_draws, "draws": draws, "rounds": rounds},
        largest,
        tuple(time_ratio(largest, ALIAS, name) for name in others),
        tuple(_growth(by_size)),
    )


def _measure_size(
    size: int, num_draws: int, draws: int, rounds: int, seed: int
) -> dict[str, Measurement]:
    """Measure all jobs over one catalogue in turn, and the building of the table by itself."""
    jobs = sampler_jobs(size, num_draws, alpha=ALPHA, seed=seed)
    seconds = time_alternately(
        f"sampler, {size:,} items",
        {name: partial(_repeat, job, draws) for name, job in jobs.items()},
        rounds=rounds,
    )
    floor = statistics.median(seconds[BARE]) / draws
    measured = {
        name: Measurement(
            taken,
            draws * num_draws,
            "rows",
            calls=draws,
            floor_seconds=floor if name in (ALIAS, SEARCH, MULTINOMIAL, ROWS) else None,
        )
        for name, taken in seconds.items()
    }
    probabilities = _probabilities(size)
    build = {_BUILD: lambda: AliasTable(probabilities)}
    taken = time_alternately("alias table", build, rounds=min(rounds, _BUILDS))[_BUILD]
    return measured | {_BUILD: Measurement(taken, size, "items")}


def _repeat(job: Job, times: int) -> None:
    for _ in range(times):
        job()


def _probabilities(size: int) -> NDArray[np.float64]:
    return popularity_probabilities(zipf_counts(size), ALPHA)


def _growth(by_size: Mapping[int, Mapping[str, Measurement]]) -> list[Growth]:
    """Make a line of every job, over the sizes that it was measured at, in groups."""
    names = dict.fromkeys(name for measured in by_size.values() for name in measured)
    return [
        growth_of(
            name,
            _AXIS,
            {n: some[name] for n, some in by_size.items() if name in some},
            group=_group(name),
        )
        for name in names
    ]


def _group(name: str) -> str:
    if name.endswith(LOG_Q):
        return "log Q"
    return "update and build" if name.endswith((UPDATE, _BUILD)) else "draw"
