"""The probabilities that each distribution names, by hand, and what it learns and refuses."""

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from recsys.foundations import ArgumentError, FormatError, ShapeError, make_generator
from recsys.sampling import (
    LearnedUnigramProposal,
    LogUniformProposal,
    PopularityProposal,
    Proposal,
    UniformProposal,
)

COUNTS = np.array([40, 0, 8, 1, 16, 2, 33, 4, 20, 12])
EVERYTHING = torch.arange(len(COUNTS))


def make_learned() -> LearnedUnigramProposal:
    proposal = LearnedUnigramProposal(len(COUNTS))
    proposal.update(torch.tensor([0, 0, 9, 4]))
    proposal.update(torch.tensor([9, 0]))
    return proposal


EVERY_PROPOSAL: dict[str, Callable[[], Proposal]] = {
    "uniform": lambda: UniformProposal(len(COUNTS)),
    "popularity": lambda: PopularityProposal(COUNTS, alpha=0.75),
    "rare first": lambda: PopularityProposal(COUNTS, alpha=-1.0),
    "log-uniform": lambda: LogUniformProposal(COUNTS),
    "learned unigram": make_learned,
}
FIXED = [name for name in EVERY_PROPOSAL if name != "learned unigram"]


def probabilities_of(proposal: Proposal) -> torch.Tensor:
    return proposal.log_probability(torch.arange(proposal.num_candidates)).exp()


@pytest.mark.parametrize("name", EVERY_PROPOSAL)
def test_probabilities_sum_to_one(name: str) -> None:
    proposal = EVERY_PROPOSAL[name]()
    log_p = proposal.log_probability(EVERYTHING)
    assert log_p.dtype == torch.float64
    assert log_p.exp().sum().item() == pytest.approx(1, abs=1e-14)
    assert_close(proposal.log_probability(EVERYTHING.reshape(5, 2)), log_p.reshape(5, 2))


@pytest.mark.parametrize("name", EVERY_PROPOSAL)
def test_levels_are_the_different_probabilities_and_how_many_candidates_have_each(
    name: str,
) -> None:
    proposal = EVERY_PROPOSAL[name]()
    log_p, numbers = proposal.levels()
    assert (numbers > 0).all()
    repeated = log_p.repeat_interleave(numbers)
    assert torch.equal(repeated.sort().values, proposal.log_probability(EVERYTHING).sort().values)


@settings(max_examples=50)
@given(steps=st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=9), max_size=6))
def test_levels_of_a_learned_unigram_follow_its_counts(steps: list[list[int]]) -> None:
    proposal, counts = LearnedUnigramProposal(6), [1] * 6
    for step in steps:
        proposal.update(torch.tensor(step))
        for row in step:
            counts[row] += 1
    log_p, numbers = proposal.levels()
    total = sum(counts)
    expected = sorted(Counter(counts).items())
    assert numbers.tolist() == [number for _, number in expected]
    assert_close(log_p.exp().tolist(), [count / total for count, _ in expected], rtol=1e-14, atol=0)
    again = LearnedUnigramProposal(6)
    again.load_state_dict(proposal.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(again.levels(), (log_p, numbers), strict=True))


@pytest.mark.parametrize("name", EVERY_PROPOSAL)
def test_repeats_its_draws_from_the_same_seed(name: str) -> None:
    proposal = EVERY_PROPOSAL[name]()
    first, again, other = (proposal.draw(50, make_generator(seed)) for seed in (1, 1, 2))
    assert first.dtype == torch.int64
    assert first.shape == (50,)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert proposal.draw(0, make_generator(1)).shape == (0,)


def make_learned_long() -> LearnedUnigramProposal:
    """Make one that has counted 2^26 positives of each of three candidates."""
    proposal = LearnedUnigramProposal(3)
    proposal.load_state_dict({"counts": torch.full((3,), 2**26)})
    return proposal


@pytest.mark.parametrize(
    ("make", "width"), [(lambda: UniformProposal(3 * 2**26), 2**26), (make_learned_long, 1)]
)
def test_draws_alike_past_what_32_random_bits_divide_evenly(
    make: Callable[[], Proposal], width: int
) -> None:
    # 2^32 = 21 * 3 * 2^26 + 2^26: of 32 bits' remainders 22 / 64 = 0.344 are in the first third.
    drawn = make().draw(100_000, make_generator(0, "large"))
    shares = torch.bincount(drawn // width, minlength=3) / 100_000
    assert_close(shares, torch.full((3,), 1 / 3), rtol=0, atol=0.006)  # 4 standard deviations


@pytest.mark.parametrize("name", FIXED)
def test_a_fixed_distribution_has_no_state_and_does_not_learn(name: str) -> None:
    proposal = EVERY_PROPOSAL[name]()
    before = probabilities_of(proposal)
    proposal.update(torch.tensor([0, 0, 1]))
    assert torch.equal(probabilities_of(proposal), before)
    assert proposal.state_dict() == {}
    proposal.load_state_dict({})
    with pytest.raises(FormatError, match="must be empty for this sampler"):
        proposal.load_state_dict({"counts": torch.ones(10)})


@pytest.mark.parametrize("row", [-1, 10])
@pytest.mark.parametrize("name", EVERY_PROPOSAL)
def test_refuses_rows_outside_the_catalogue(name: str, row: int) -> None:
    with pytest.raises(ArgumentError, match=rf"`rows` must be in \[0, 10\), got {row}"):
        EVERY_PROPOSAL[name]().log_probability(torch.tensor([0, row]))


def test_log_uniform_ranks_by_count_whatever_the_order_of_rows() -> None:
    # Counts 3, 9, 3, 0: ranks 1, 0, 2 (the tie goes to the earlier row), 3. The chance of rank r is
    # log((r + 2) / (r + 1)) / log 5: log 2, log 3/2, log 4/3, log 5/4.
    p = probabilities_of(LogUniformProposal(np.array([3, 9, 3, 0])))
    expected = np.log([3 / 2, 2, 4 / 3, 5 / 4]) / math.log(5)
    assert p.tolist() == pytest.approx(expected.tolist(), rel=1e-14)


def test_log_uniform_over_one_candidate_is_certain() -> None:
    proposal = LogUniformProposal(torch.tensor([0]))
    assert probabilities_of(proposal).tolist() == [1.0]
    assert proposal.draw(3, make_generator(0)).tolist() == [0, 0, 0]


def test_log_uniform_names_counts_that_are_wrong() -> None:
    with pytest.raises(ArgumentError, match="`counts` must be finite and not negative"):
        LogUniformProposal(np.array([1, -1]))
    with pytest.raises(ArgumentError, match="`counts` must hold one candidate or more"):
        LogUniformProposal(np.array([]))
    with pytest.raises(ShapeError, match="`counts` must have shape"):
        LogUniformProposal(np.ones((2, 2)))


def test_the_learned_unigram_counts_from_one() -> None:
    proposal = LearnedUnigramProposal(4)
    assert probabilities_of(proposal).tolist() == pytest.approx([0.25] * 4)
    proposal.update(torch.tensor([3, 1, 3]))
    assert probabilities_of(proposal).tolist() == pytest.approx([1 / 7, 2 / 7, 1 / 7, 3 / 7])


def test_the_learned_unigram_goes_on_from_its_state() -> None:
    proposal, other = make_learned(), LearnedUnigramProposal(len(COUNTS))
    state = proposal.state_dict()
    proposal.update(torch.tensor([1]))  # the state that was given stays as it was
    assert state["counts"].tolist() == [4, 1, 1, 1, 2, 1, 1, 1, 1, 3]
    other.load_state_dict(state)
    other.update(torch.tensor([1]))
    assert torch.equal(probabilities_of(other), probabilities_of(proposal))
    first, second = (p.draw(30, make_generator(0)) for p in (proposal, other))
    assert torch.equal(first, second)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({}, "must hold counts, got"),
        ({"counts": torch.ones(3, dtype=torch.int64)}, "must be int64 of shape"),
        ({"counts": torch.ones(10)}, "must be int64 of shape"),
        ({"counts": torch.zeros(10, dtype=torch.int64)}, "must be at least 1, got 0"),
    ],
)
def test_the_learned_unigram_refuses_the_state_of_another(
    state: dict[str, torch.Tensor], words: str
) -> None:
    with pytest.raises(FormatError, match=words):
        make_learned().load_state_dict(state)


def test_the_learned_unigram_refuses_positives_outside_the_catalogue() -> None:
    with pytest.raises(ArgumentError, match=r"`positive_rows` must be in \[0, 10\), got 10"):
        make_learned().update(torch.tensor([1, 10]))
    with pytest.raises(ArgumentError, match="`num_candidates` must be above 0, got 0"):
        LearnedUnigramProposal(0)
