"""Exact search against a plain product and its top k.

Dimensions: B queries, C candidates, D embedding width.
"""

import numpy as np
import torch

from recsys.benchmark.measure import time_alternately
from recsys.benchmark.measurement import Measurement
from recsys.benchmark.result import BenchmarkResult, time_ratio
from recsys.foundations import make_numpy_generator
from recsys.index import ExactIndex


def measure_search(
    *, catalogue_size: int, dim: int, num_queries: int, k: int, rounds: int, seed: int
) -> BenchmarkResult:
    """Time the search of many users at once.

    Args:
        catalogue_size: C.
        dim: D.
        num_queries: B.
        k: Results a user.
        rounds: Rounds.
        seed: Of the made-up vectors.
    """
    rng = make_numpy_generator(seed, "benchmark", "search")
    vectors = rng.standard_normal((catalogue_size, dim), dtype=np.float32)
    queries = rng.standard_normal((num_queries, dim), dtype=np.float32)
    index = ExactIndex(vectors)
    plain_vectors, plain_queries = torch.from_numpy(vectors), torch.from_numpy(queries)
    jobs = {
        "exact search": lambda: index.search(queries, k),
        "product and topk": lambda: torch.topk(
            plain_queries @ plain_vectors.T, min(k, catalogue_size), dim=1
        ),
    }
    measurements = {
        name: Measurement(seconds, num_queries, "users")
        for name, seconds in time_alternately("search", jobs, rounds=rounds).items()
    }
    return BenchmarkResult(
        "search",
        "top k of the whole catalogue; exact search scores anew in float64 and orders ties by row",
        {
            "catalogue_size": catalogue_size,
            "dim": dim,
            "num_queries": num_queries,
            "k": k,
            "rounds": rounds,
        },
        measurements,
        (time_ratio(measurements, "exact search", "product and topk"),),
    )
