"""What is timed of the samplers over one catalogue."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.benchmark.measure import Job
from recsys.benchmark.synthetic import zipf_counts
from recsys.foundations import make_generator
from recsys.sampling import (
    BigramProposal,
    BigramSampler,
    CountMinPopularity,
    DeduplicatedSampler,
    DistinctSampler,
    DrawRequest,
    ExactPopularity,
    InBatchSampler,
    IndependentSampler,
    LearnedUnigramProposal,
    MixedSampler,
    Popularity,
    PopularityProposal,
    Sampler,
    SeededHashing,
    StreamingPopularity,
    WithReplacementSampler,
    draw,
    popularity_probabilities,
)

ALIAS, SEARCH, MULTINOMIAL = "alias table", "searchsorted", "torch.multinomial"
LOG_Q, UPDATE = "log Q", "update"  # how names end
ROWS, BARE = "item of a random training row", "one random read a draw"
_MOST_CATEGORIES = 2**24  # of torch.multinomial
_MOST_EVENTS = 20_000_000  # of the log that training rows are drawn from
_EVENTS_A_CANDIDATE = 10
_MOST_PAIRS = 2_000_000
_BIGRAM_DRAWS = 16  # a query
_TABLES, _BUCKETS = 2, 2**20


def sampler_jobs(size: int, num_draws: int, *, alpha: float, seed: int) -> dict[str, Job]:
    """Build everything over one catalogue, popular by Zipf's law.

    Args:
        size: Candidates.
        num_draws: Candidates a call; also the positives of the calls that learn.
        alpha: Power of the popularity.
        seed: Of all draws.

    Returns:
        Name -> a call of it.
    """
    counts = zipf_counts(size)
    generator = make_generator(seed, "benchmark", "sampler")
    proposal = PopularityProposal(counts, alpha=alpha)
    jobs: dict[str, Job] = {ALIAS: partial(proposal.draw, num_draws, generator)}
    jobs |= _other_draws(popularity_probabilities(counts, alpha), num_draws, generator)
    positives = PopularityProposal(counts, alpha=1.0).draw(num_draws, generator)
    request = DrawRequest(positives)
    for name, sampler in _samplers(counts, proposal, num_draws):
        jobs[f"{name}, {LOG_Q}"] = partial(draw, sampler, request, generator)
    jobs[f"bigram, {_BIGRAM_DRAWS} a query, {LOG_Q}"] = _bigram(counts, num_draws, generator)
    return jobs | _updates(size, positives)


def _other_draws(
    probabilities: NDArray[np.float64], num_draws: int, generator: torch.Generator
) -> dict[str, Job]:
    """Give the draws that the alias table is compared with, and its floor."""
    size = len(probabilities)
    weights, cumulative = map(torch.from_numpy, (probabilities, np.cumsum(probabilities)))
    num_events = min(_EVENTS_A_CANDIDATE * size, _MOST_EVENTS)
    log = torch.randint(size, (num_events,), generator=generator, dtype=torch.int32)
    jobs: dict[str, Job] = {
        SEARCH: partial(_search, cumulative, num_draws, generator),
        ROWS: partial(_read, log, num_draws, generator),
        BARE: partial(_read, weights, num_draws, generator),
    }
    if size <= _MOST_CATEGORIES:
        jobs[MULTINOMIAL] = partial(
            torch.multinomial, weights, num_draws, replacement=True, generator=generator
        )
    return jobs


def _search(cumulative: Tensor, num_draws: int, generator: torch.Generator) -> Tensor:
    points = torch.rand(num_draws, generator=generator, dtype=torch.float64)
    return torch.searchsorted(cumulative, points * cumulative[-1], right=True)


def _read(values: Tensor, num_draws: int, generator: torch.Generator) -> Tensor:
    places = torch.randint(len(values), (num_draws,), generator=generator)
    return values.index_select(0, places)


def _samplers(
    counts: NDArray[np.int64], proposal: PopularityProposal, num_draws: int
) -> Iterator[tuple[str, Sampler]]:
    exact = ExactPopularity(counts)
    with_replacement = WithReplacementSampler(proposal, num_sampled=num_draws)
    yield "with replacement", with_replacement
    yield "deduplicated", DeduplicatedSampler(proposal, num_draws=num_draws)
    if num_draws <= len(counts) // 2:
        yield "distinct", DistinctSampler(proposal, num_sampled=num_draws)
    yield "independent", IndependentSampler(proposal, num_sampled=num_draws)
    learned = LearnedUnigramProposal(len(counts))
    yield "learned unigram", WithReplacementSampler(learned, num_sampled=num_draws)
    yield "in-batch", InBatchSampler(exact)
    yield "in-batch and drawn", MixedSampler([InBatchSampler(exact), with_replacement])


def _bigram(counts: NDArray[np.int64], num_draws: int, generator: torch.Generator) -> Job:
    """Give draws of several candidates for each of fewer queries."""
    size, queries = len(counts), max(num_draws // _BIGRAM_DRAWS, 1)
    num_pairs = min(_EVENTS_A_CANDIDATE * size, _MOST_PAIRS)
    pairs = torch.randint(size, (2, num_pairs), generator=generator)
    proposal = BigramProposal(counts, *pairs, unigram_share=0.3)
    rows = torch.randint(size, (2, queries), generator=generator)
    sampler = BigramSampler(proposal, num_sampled=_BIGRAM_DRAWS)
    return partial(draw, sampler, DrawRequest(*rows), generator)


def _updates(size: int, positives: Tensor) -> dict[str, Job]:
    """Give what learns from the positives of a step."""
    hashing = SeededHashing(_TABLES, _BUCKETS, seed=0)
    gap = max(size / len(positives), 1.0)
    learners: dict[str, LearnedUnigramProposal | Popularity] = {
        "learned unigram": LearnedUnigramProposal(size),
        "streaming popularity": StreamingPopularity(hashing, step_size=0.05, initial_gap=gap),
        "count-min popularity": CountMinPopularity(hashing, initial_count=1.0, num_candidates=size),
    }
    return {f"{name}, {UPDATE}": partial(one.update, positives) for name, one in learners.items()}
