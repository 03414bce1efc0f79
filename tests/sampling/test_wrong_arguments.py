"""Rows of another kind, sizes that are no numbers of draws, and rates beyond what there can be."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from recsys.foundations import ArgumentError
from recsys.sampling import (
    BigramProposal,
    BigramSampler,
    CountMinPopularity,
    DeduplicatedSampler,
    DistinctSampler,
    DrawRequest,
    ExactPopularity,
    FenwickTree,
    HardNegativeSampler,
    LearnedUnigramProposal,
    LogUniformProposal,
    MemorySampler,
    PerQuerySampler,
    PopularityProposal,
    SeededHashing,
    StreamingPopularity,
    TableHashing,
    UniformProposal,
    WithReplacementSampler,
    popularity_probabilities,
)

COUNTS = np.array([5, 3, 1, 1, 9])
HASHING = SeededHashing(2, 8, 0)
PAIRS = BigramProposal(COUNTS, np.array([0, 0, 1]), np.array([1, 4, 0]), unigram_share=0.5)


def make_streaming(initial_gap: float) -> StreamingPopularity:
    return StreamingPopularity(HASHING, step_size=0.5, initial_gap=initial_gap)


def make_memory() -> MemorySampler:
    return MemorySampler(ExactPopularity(COUNTS), size=4, max_age=2, embedding_dim=3)


def search_hard(rows: Tensor) -> Any:
    sampler = HardNegativeSampler(lambda queries: rows, num_sampled=2, num_top=2)
    request = DrawRequest(torch.tensor([0]), query_embeddings=torch.zeros(1, 3))
    return sampler.sample(request, torch.Generator())


TAKES_ROWS: dict[str, Callable[[Tensor], Any]] = {
    "uniform": lambda rows: UniformProposal(5).log_probability(rows),
    "popularity": lambda rows: PopularityProposal(COUNTS, alpha=1).log_probability(rows),
    "log-uniform": lambda rows: LogUniformProposal(COUNTS).log_probability(rows),
    "learned": lambda rows: LearnedUnigramProposal(5).log_probability(rows),
    "learned, update": lambda rows: LearnedUnigramProposal(5).update(rows),
    "exact": lambda rows: ExactPopularity(COUNTS).log_rate(rows, 3),
    "streaming": lambda rows: make_streaming(2).log_rate(rows, 3),
    "streaming, update": lambda rows: make_streaming(2).update(rows),
    "count-min": lambda rows: CountMinPopularity(HASHING, initial_count=1, num_candidates=5).update(
        rows
    ),
    "bigram, last": lambda rows: PAIRS.draw(rows, 2, torch.Generator()),
    "bigram, next": lambda rows: BigramProposal(COUNTS, rows, rows, unigram_share=0.5),
    "memory": lambda rows: make_memory().update(rows, torch.zeros(1, 3)),
    "request": DrawRequest,
    "request, last": lambda rows: DrawRequest(torch.zeros(1).long(), last_rows=rows),
    "written hashing": lambda rows: TableHashing(rows[None], num_buckets=5),
    "hard negatives": lambda rows: search_hard(rows.repeat(1, 2)),
}


@pytest.mark.parametrize("name", TAKES_ROWS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.uint8])
def test_rows_of_another_kind_are_refused(name: str, dtype: torch.dtype) -> None:
    TAKES_ROWS[name](torch.tensor([1]))
    kind = str(dtype).removeprefix("torch.")
    with pytest.raises(ArgumentError, match=f"` must hold int64, got {kind}"):
        TAKES_ROWS[name](torch.tensor([1]).to(dtype))


def test_vectors_of_another_kind_are_refused() -> None:
    rows = torch.tensor([1])
    with pytest.raises(ArgumentError, match="`query_embeddings` must hold floating-point numbers"):
        DrawRequest(rows, query_embeddings=torch.zeros(1, 3).long())
    with pytest.raises(ArgumentError, match="`positive_embeddings` must hold floating-point"):
        make_memory().update(rows, torch.zeros(1, 3).long())


def test_running_sums_are_of_integers_at_places() -> None:
    with pytest.raises(ArgumentError, match="`values` must hold int64, got float64"):
        FenwickTree(np.ones(3))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="`places` must hold int64, got float64"):
        FenwickTree(np.ones(3, np.int64)).add(np.zeros(1), np.ones(1))  # type: ignore[arg-type]


def test_last_rows_of_32_bits_find_their_pairs_in_a_large_catalogue() -> None:
    size = 100_000  # size ** 2 passes 2 ** 32
    last, following = size - 1, size - 2
    proposal = BigramProposal(
        np.ones(size), np.array([last]), np.array([following]), unigram_share=0.5
    )
    narrow = torch.tensor([last], dtype=torch.int32)
    chance = proposal.log_probability(narrow, torch.tensor([[following]], dtype=torch.int32)).exp()
    assert chance.item() == pytest.approx(0.5 + 0.5 / size)


@pytest.mark.parametrize(
    "of_size",
    [
        lambda size: WithReplacementSampler(UniformProposal(5), num_sampled=size),
        lambda size: PerQuerySampler(UniformProposal(5), num_sampled=size),
        lambda size: DistinctSampler(UniformProposal(5), num_sampled=size),
        lambda size: DeduplicatedSampler(UniformProposal(5), num_draws=size),
        lambda size: BigramSampler(PAIRS, num_sampled=size),
        lambda size: UniformProposal(size),
        lambda size: SeededHashing(size, 8, 0),
        lambda size: SeededHashing(2, size, 0),
    ],
)
def test_sizes_are_whole_numbers(of_size: Callable[[Any], Any]) -> None:
    of_size(3)
    with pytest.raises(ArgumentError, match=r"must be a whole number, got 1\.5"):
        of_size(1.5)


@pytest.mark.parametrize("initial_gap", [0, 1])
def test_no_item_is_expected_more_often_than_there_are_positives(initial_gap: float) -> None:
    estimate = make_streaming(initial_gap)
    estimate.update(torch.tensor([1, 1, 2]))
    # Shares of 2/3 and 1/3 of every step; after a gap of 0 the mean gap is 1/2, which counts as 1.
    rates = estimate.log_rate(torch.tensor([1, 2]), 6).exp()
    assert rates.tolist() == pytest.approx([4, 2])


def test_a_power_that_leaves_items_without_a_chance_is_refused() -> None:
    for alpha in (1000.0, -1000.0, 1e308, -1e308):
        with pytest.raises(ArgumentError, match="`alpha` must leave every candidate with events"):
            PopularityProposal(COUNTS, alpha=alpha)
    everything = PopularityProposal(COUNTS, alpha=200).log_probability(torch.arange(5)).exp()
    assert everything.sum() == pytest.approx(1)
    assert everything.min() > 0


@pytest.mark.parametrize(("alpha", "likeliest"), [(1e308, 4), (-1e308, 2)])
def test_no_power_overflows(alpha: float, likeliest: int) -> None:
    probabilities = popularity_probabilities(np.array([5, 3, 1, 2, 9]), alpha)
    assert probabilities.tolist() == [float(row == likeliest) for row in range(5)]


def test_a_first_count_whose_sum_overflows_is_refused() -> None:
    for count in (1e308, math.inf):
        with pytest.raises(ArgumentError, match=r"`initial_count` \* `num_candidates` must be fin"):
            CountMinPopularity(HASHING, initial_count=count, num_candidates=5)
