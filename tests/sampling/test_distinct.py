"""Samples of S different candidates: TensorFlow's Q against the true chances, and the draws."""

import itertools

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, make_generator
from recsys.sampling import (
    DistinctSampler,
    DrawRequest,
    LearnedUnigramProposal,
    LogUniformProposal,
    PopularityProposal,
    Proposal,
    Sample,
    UniformProposal,
    log_distinct_expected_count,
)

COUNTS = np.array([40, 1, 8, 2, 16, 2, 33, 4, 20, 12])
EVERYTHING = torch.arange(len(COUNTS))
MAX_TRIES = 400  # what is drawn in more tries has a chance below 1e-9 in these tests

PROPOSALS: dict[str, Proposal] = {
    "uniform": UniformProposal(len(COUNTS)),
    "rare first": PopularityProposal(COUNTS, alpha=-0.5),
    "power 0.75": PopularityProposal(COUNTS, alpha=0.75),
    "unigram": PopularityProposal(COUNTS, alpha=1.0),
    "log-uniform": LogUniformProposal(COUNTS),
}


def probabilities_of(proposal: Proposal) -> NDArray[np.float64]:
    return proposal.log_probability(EVERYTHING).exp().numpy()


def true_inclusion(p: NDArray[np.float64], num_sampled: int) -> NDArray[np.float64]:
    """Give the exact chance of each candidate to be among the first S different ones.

    By recursion over sets: given that set A is held, the next different one is i with chance
    p_i / (1 - p(A)).
    """
    held = {frozenset[int](): 1.0}
    for _ in range(num_sampled):
        larger: dict[frozenset[int], float] = {}
        for rows, chance in held.items():
            left = 1 - sum(p[i] for i in rows)
            for i in set(range(len(p))) - rows:
                key = rows | {i}
                larger[key] = larger.get(key, 0.0) + chance * p[i] / left
        held = larger
    inclusion = np.zeros(len(p))
    for rows, chance in held.items():
        inclusion[list(rows)] += chance
    return inclusion


def distribution_of_tries(p: NDArray[np.float64], num_sampled: int) -> NDArray[np.float64]:
    """Give the exact chance of each number of tries, [MAX_TRIES + 1], by the same recursion.

    While A is held, a try is a repeat with chance p(A).
    """
    held = {frozenset[int](): np.eye(1, MAX_TRIES + 1)[0]}  # chance of A after t tries, just grown
    for _ in range(num_sampled):
        larger: dict[frozenset[int], NDArray[np.float64]] = {}
        for rows, chances in held.items():
            repeat = sum(p[i] for i in rows)
            waiting = np.zeros(MAX_TRIES + 1)
            for t in range(1, MAX_TRIES + 1):
                waiting[t] = waiting[t - 1] * repeat + chances[t - 1]
            for i in set(range(len(p))) - rows:
                key = rows | {i}
                larger[key] = larger.get(key, np.zeros(MAX_TRIES + 1)) + waiting * p[i]
        held = larger
    return np.asarray(np.sum(list(held.values()), axis=0))


def mean_stated_q(proposal: Proposal, num_sampled: int) -> NDArray[np.float64]:
    """Give the mean of the Q that samples state, over the exact distribution of tries."""
    chances = distribution_of_tries(probabilities_of(proposal), num_sampled)
    assert chances.sum() == pytest.approx(1, abs=1e-9)
    log_p = proposal.log_probability(EVERYTHING)
    stated = [
        log_distinct_expected_count(log_p, num_sampled=num_sampled, num_tries=tries).exp()
        for tries in range(num_sampled, MAX_TRIES + 1)
    ]
    return np.asarray(chances[num_sampled:] @ torch.stack(stated).numpy())


def draw_samples(proposal: Proposal, num_sampled: int, *, number: int) -> list[Sample]:
    sampler, generator = DistinctSampler(proposal, num_sampled=num_sampled), make_generator(0, "d")
    request = DrawRequest(torch.tensor([0]))
    return [sampler.sample(request, generator) for _ in range(number)]


def test_the_recursion_agrees_with_the_enumeration_of_all_orders() -> None:
    p = np.array([0.5, 0.25, 0.15, 0.1])
    expected = np.zeros(4)
    for first, second in itertools.permutations(range(4), 2):
        expected[[first, second]] += p[first] * p[second] / (1 - p[first])
    np.testing.assert_allclose(true_inclusion(p, 2), expected, rtol=1e-12)
    # Two tries: all pairs but the doubles, 1 - sum of p^2 = 1 - 0.345.
    assert distribution_of_tries(p, 2)[2] == pytest.approx(0.655, rel=1e-12)


@pytest.mark.parametrize("num_sampled", [2, 4])
def test_the_stated_q_is_close_to_the_true_inclusion_probability(
    num_sampled: int, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"\nmean stated Q / true inclusion probability, {num_sampled} distinct of 10:"]
    for name, proposal in PROPOSALS.items():
        true = true_inclusion(probabilities_of(proposal), num_sampled)
        ratio = mean_stated_q(proposal, num_sampled) / true
        lines.append(f"  {name:12} from {ratio.min():.3f} to {ratio.max():.3f}")
        # Computed exactly, over all sets and numbers of tries; the bounds are the docstring's.
        assert ratio.min() > 0.95
        assert ratio.max() < 1.20
    with capsys.disabled():
        print(*lines, sep="\n")  # noqa: T201


@pytest.mark.parametrize("alpha", [0.0, 0.75])
def test_the_stated_q_of_larger_samples_sums_to_their_size(alpha: float) -> None:
    proposal, everything = PopularityProposal(np.tile(COUNTS, 100), alpha=alpha), torch.arange(1000)
    sums = [
        sample.log_expected_count(everything).exp().sum().item()
        for sample in draw_samples(proposal, 64, number=200)
    ]
    assert np.mean(sums) == pytest.approx(64, rel=0.01)  # one sum's deviation is about 3 %


@pytest.mark.parametrize("name", PROPOSALS)
def test_draws_different_candidates_each_as_often_as_it_truly_should(name: str) -> None:
    proposal, number = PROPOSALS[name], 1500
    samples = draw_samples(proposal, 4, number=number)
    assert all(len(set(sample.rows.tolist())) == len(sample.rows) == 4 for sample in samples)
    counts = np.bincount(torch.cat([sample.rows for sample in samples]), minlength=len(COUNTS))
    true = true_inclusion(probabilities_of(proposal), 4)
    deviations = (counts - number * true) / np.sqrt(number * true * (1 - true))
    assert np.abs(deviations).max() < 4


@pytest.mark.parametrize("name", PROPOSALS)
def test_counts_its_tries(name: str) -> None:
    # The mean over samples of the Q that they state, against the mean over the exact distribution
    # of tries. Each Q rises with the tries, so that a miscount would shift all of them.
    proposal = PROPOSALS[name]
    samples = draw_samples(proposal, 4, number=1500)
    stated = torch.stack([sample.log_expected_count(EVERYTHING).exp() for sample in samples])
    standard_error = stated.std(dim=0) / len(samples) ** 0.5
    deviations = (stated.mean(dim=0).numpy() - mean_stated_q(proposal, 4)) / standard_error.numpy()
    assert np.abs(deviations).max() < 4


class Scripted(UniformProposal):
    """Uniform over ten candidates by its own account; draws what it is told."""

    def __init__(self, rows: list[int]) -> None:
        super().__init__(10)
        self._rows = rows

    def draw(self, num_draws: int, generator: torch.Generator) -> torch.Tensor:
        drawn, self._rows = self._rows[:num_draws], self._rows[num_draws:]
        return torch.tensor(drawn)


@pytest.mark.parametrize(
    ("script", "rows", "q"),
    [
        ([7, 2, 5], [7, 2, 5], 0.3),  # no repeat: S p
        ([7, 7, 2, 5, 1, 1], [7, 2, 5], 1 - 0.9**4),
        ([7, 7, 7, 7, 2, 2, 2, 7, 5], [7, 2, 5], 1 - 0.9**9),
    ],
)
def test_keeps_the_first_different_ones_by_hand(
    script: list[int], rows: list[int], q: float
) -> None:
    sampler = DistinctSampler(Scripted(script), num_sampled=3)
    sample = sampler.sample(DrawRequest(torch.tensor([0])), make_generator(0))
    assert sample.rows.tolist() == rows
    assert sample.expected_size == 3
    assert sample.log_expected_count(torch.tensor([4])).exp().item() == pytest.approx(q, rel=1e-12)


def test_draws_the_whole_catalogue_if_asked() -> None:
    (sample,) = draw_samples(PopularityProposal(COUNTS, alpha=1.0), len(COUNTS), number=1)
    assert sorted(sample.rows.tolist()) == EVERYTHING.tolist()


def test_learns_with_its_proposal() -> None:
    sampler = DistinctSampler(LearnedUnigramProposal(4), num_sampled=1)
    sampler.update(torch.tensor([3, 3, 1]), torch.zeros(3, 2))
    sample = sampler.sample(DrawRequest(torch.tensor([0])), make_generator(0))
    q = sample.log_expected_count(torch.arange(4)).exp()
    assert q.tolist() == pytest.approx([1 / 7, 2 / 7, 1 / 7, 3 / 7], rel=1e-12)
    again = DistinctSampler(LearnedUnigramProposal(4), num_sampled=1)
    again.load_state_dict(sampler.state_dict())
    assert again.state_dict()["counts"].tolist() == [1, 2, 1, 3]


def test_refuses_more_different_ones_than_there_are() -> None:
    proposal = PopularityProposal(np.array([3, 0, 1]), alpha=1.0)
    with pytest.raises(ArgumentError, match=r"`num_sampled` must be at most 2, .* got 3"):
        DistinctSampler(proposal, num_sampled=3)
    with pytest.raises(ArgumentError, match="`num_sampled` must be above 0, got 0"):
        DistinctSampler(proposal, num_sampled=0)


def test_says_when_a_rare_one_does_not_come() -> None:
    proposal = PopularityProposal(np.array([10**12, 1]), alpha=1.0)
    with pytest.raises(ArgumentError, match="in 2000 tries, got 2: 1 were"):
        draw_samples(proposal, 2, number=1)


def test_refuses_fewer_tries_than_candidates() -> None:
    with pytest.raises(ArgumentError, match="`num_tries` must be at least 3, got 2"):
        log_distinct_expected_count(torch.zeros(1), num_sampled=3, num_tries=2)
