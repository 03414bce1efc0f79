"""What is timed finds the same: every way of searching against the other, and what is written."""

from typing import Any

import numpy as np
import pytest

from recsys.benchmark import BenchmarkResult, measure_search
from recsys.benchmark.search_jobs import EXACT, EXCLUDING, FAISS, PLAIN, SearchInputs, search_jobs
from recsys.index import Hits


def make_inputs() -> SearchInputs:
    return SearchInputs.make(200, 6, num_queries=9, num_excluded=4, seed=1)


def test_every_way_of_searching_finds_the_same_candidates() -> None:
    inputs = make_inputs()
    jobs = search_jobs(inputs, 7)
    exact, faiss, plain = (jobs[name]() for name in (EXACT, FAISS, PLAIN))
    assert isinstance(exact, Hits)
    assert isinstance(faiss, tuple)
    assert isinstance(plain, tuple)
    rows = exact.candidate_rows.reshape(9, 7)
    assert rows.tolist() == faiss[1].tolist() == plain[1].tolist()
    np.testing.assert_allclose(exact.scores.reshape(9, 7), faiss[0], rtol=1e-5)


def test_seen_items_are_left_out() -> None:
    inputs = make_inputs()
    found = search_jobs(inputs, 200)[EXCLUDING]()
    assert isinstance(found, Hits)
    for query, (rows, _) in enumerate(found):
        assert set(rows.tolist()) == set(range(200)) - set(inputs.seen[query].tolist())


def measure(**changes: Any) -> BenchmarkResult:
    sizes: dict[str, Any] = {
        "catalogue_sizes": [60, 20],
        "dims": [3, 5],
        "ks": [2, 30],  # beyond the smallest catalogue
        "dim": 4,
        "k": 5,
        "num_queries": 6,
        "num_excluded": 2,
        "rounds": 1,
        "seed": 0,
    }
    return measure_search(**{**sizes, **changes})


@pytest.mark.parametrize(("dims", "ks"), [([], []), ([3], [2])])
def test_fewer_than_two_dimensions_or_ks_are_not_measured(dims: list[int], ks: list[int]) -> None:
    result = measure(dims=dims, ks=ks, catalogue_sizes=[20])
    assert {line.axis for line in result.growth} == {"catalogue size"}
    assert result.measurements[EXACT].units == 6


def test_growth_is_over_catalogues_dimensions_and_k() -> None:
    result = measure()
    lines = {(line.name, line.axis): line.sizes for line in result.growth}
    assert len(lines) == 12
    assert lines[EXACT, "catalogue size"] == [20, 60]
    assert lines[FAISS, "dimension"] == [3, 5]
    assert lines[EXCLUDING, "k"] == [2, 30]
    assert result.measurements[PLAIN].peak_bytes is not None
    assert result.measurements[EXACT].floor_seconds is not None
    assert result.measurements[EXACT].units == 6
