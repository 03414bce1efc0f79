"""Draws from the alias table against torch's own draws and against binary search."""

import numpy as np
import torch

from recsys.benchmark.measure import time_alternately
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.result import BenchmarkResult, time_ratio
from recsys.benchmark.synthetic import zipf_counts
from recsys.foundations import make_generator
from recsys.sampling import AliasTable, popularity_probabilities

_MOST_CATEGORIES = 2**24  # of torch.multinomial


def measure_sampler(
    *, catalogue_size: int, num_draws: int, draws: int, rounds: int, seed: int
) -> BenchmarkResult:
    """Time draws with replacement by popularity.

    Args:
        catalogue_size: Candidates, popular by Zipf's law.
        num_draws: Candidates a draw, as one training step needs.
        draws: Draws a round.
        rounds: Rounds.
        seed: Of the draws.
    """
    probabilities = popularity_probabilities(zipf_counts(catalogue_size), alpha=0.75)
    table, weights = AliasTable(probabilities), torch.from_numpy(probabilities)
    cumulative = torch.from_numpy(np.cumsum(probabilities))
    generator = make_generator(seed, "benchmark", "sampler")

    def by_alias() -> None:
        for _ in range(draws):
            table.draw(num_draws, generator)

    def by_multinomial() -> None:
        for _ in range(draws):
            torch.multinomial(weights, num_draws, replacement=True, generator=generator)

    def by_search() -> None:
        for _ in range(draws):
            points = torch.rand(num_draws, generator=generator, dtype=torch.float64)
            torch.searchsorted(cumulative, points * cumulative[-1], right=True)

    jobs = {"alias table": by_alias, "searchsorted": by_search}
    if catalogue_size <= _MOST_CATEGORIES:
        jobs["torch.multinomial"] = by_multinomial
    seconds = time_alternately("sampler", jobs, rounds=rounds)
    measurements = {
        name: Measurement(taken, draws * num_draws, "draws", calls=draws)
        for name, taken in seconds.items()
    }
    return BenchmarkResult(
        "sampler",
        "draws with replacement by popularity; what is built once is not in the time",
        {
            "catalogue_size": catalogue_size,
            "num_draws": num_draws,
            "draws": draws,
            "rounds": rounds,
        },
        measurements,
        tuple(
            time_ratio(measurements, "alias table", name) for name in jobs if name != "alias table"
        ),
    )
