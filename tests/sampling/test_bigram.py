"""The bigram proposal against its formula and its own draws, alone and in a mixture."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError, FormatError, ShapeError, make_generator
from recsys.sampling import (
    BigramProposal,
    BigramSampler,
    DrawRequest,
    ExactPopularity,
    InBatchSampler,
    MixedSampler,
    UniformProposal,
    WithReplacementSampler,
    draw,
)

COUNTS = np.array([6, 3, 0, 8, 2, 1])
# Row 0 is followed by 1, 3, 3, 3, 0; row 3 by 4, 4; row 4 by 5; 1, 2 and 5 by nothing.
PREVIOUS = np.array([0, 3, 0, 0, 4, 0, 3, 0])
NEXT = np.array([1, 4, 3, 3, 5, 3, 4, 0])
# By degrees of freedom: the chi-square value that one seed in 1000 exceeds.
CRITICAL = {4: 18.47, 5: 20.52}


def make_proposal(unigram_share: float = 0.25) -> BigramProposal:
    return BigramProposal(COUNTS, PREVIOUS, NEXT, unigram_share=unigram_share)


def probabilities(proposal: BigramProposal, last_rows: list[int]) -> Tensor:
    """Give [B, C]: the probability of every candidate for each last row."""
    rows = torch.arange(proposal.num_candidates).expand(len(last_rows), -1)
    return proposal.log_probability(torch.tensor(last_rows), rows).exp()


def chi_square(drawn: Tensor, expected: Tensor) -> float:
    counts = torch.bincount(drawn, minlength=len(expected))
    assert counts[expected == 0].sum() == 0
    reached = expected > 0
    return float(((counts - expected)[reached] ** 2 / expected[reached]).sum())


def test_equals_the_values_worked_by_hand() -> None:
    # The unigram is 6, 3, 0, 8, 2, 1 of 20. A quarter of it beside 3/4 of what followed:
    # after 0: 1/5, 1/5, 0, 3/5, 0, 0;  after 3: 4 always;  after 1: nothing known, the unigram.
    unigram = torch.tensor([0.3, 0.15, 0, 0.4, 0.1, 0.05], dtype=torch.float64)
    after_0 = torch.tensor([0.2, 0.2, 0, 0.6, 0, 0], dtype=torch.float64)
    after_3 = torch.tensor([0, 0, 0, 0, 1.0, 0], dtype=torch.float64)
    expected = [unigram / 4 + after_0 * 0.75, unigram / 4 + after_3 * 0.75, unigram, unigram]
    assert_close(probabilities(make_proposal(), [0, 3, 1, -1]), torch.stack(expected))


LOGS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=60)


@given(
    pairs=LOGS,
    counts=st.lists(st.integers(0, 9), min_size=7, max_size=7).filter(any),
    share=st.sampled_from([0.01, 0.5, 1.0]),
)
def test_equals_a_slow_count_of_the_pairs(
    pairs: list[tuple[int, int]], counts: list[int], share: float
) -> None:
    previous, following = np.array(pairs, np.int64).reshape(-1, 2).T
    proposal = BigramProposal(np.array(counts), previous, following, unigram_share=share)
    actual = probabilities(proposal, list(range(-1, 7)))
    for last in range(-1, 7):
        followers = [second for first, second in pairs if first == last]
        for row in range(7):
            expected = counts[row] / sum(counts)
            if followers:
                expected = share * expected + (1 - share) * followers.count(row) / len(followers)
            assert actual[last + 1, row].item() == pytest.approx(expected, rel=1e-12)
    assert_close(actual.sum(dim=1), torch.ones(8, dtype=torch.float64))
    assert (actual[:, np.array(counts) > 0] > 0).all()  # wherever the unigram reaches


@pytest.mark.parametrize("unigram_share", [0.25, 1.0])
def test_draws_as_often_as_it_says_for_every_last_item(unigram_share: float) -> None:
    proposal, num_draws = make_proposal(unigram_share), 40_000
    last_rows = [0, 3, 4, 1, -1, 0]
    drawn = proposal.draw(torch.tensor(last_rows), num_draws, make_generator(1, "bigram"))
    assert drawn.shape == (6, num_draws)
    expected = probabilities(proposal, last_rows) * num_draws
    for query in range(len(last_rows)):
        assert chi_square(drawn[query], expected[query]) < CRITICAL[4]  # row 2 has no event
    assert not torch.equal(drawn[0], drawn[5])  # the same last item, draws of its own


def test_the_draws_of_one_query_are_independent() -> None:
    # 10,000 times two draws after row 0: the pairs against the product of the two.
    proposal = make_proposal()
    last_rows = torch.zeros(10_000, dtype=torch.int64)
    drawn = proposal.draw(last_rows, 2, make_generator(2, "pairs"))
    p = probabilities(proposal, [0])[0]
    expected = 10_000 * (p[:, None] * p[None, :]).flatten()
    # 25 cells that are reached, 24 degrees of freedom.
    assert chi_square(drawn[:, 0] * 6 + drawn[:, 1], expected) < 51.18


def test_reaches_a_follower_that_has_no_event_of_its_own() -> None:
    proposal = BigramProposal(np.array([1, 0]), np.array([0]), np.array([1]), unigram_share=0.5)
    assert_close(probabilities(proposal, [0, 1]).tolist(), [[0.5, 0.5], [1.0, 0.0]])


def test_a_tiny_share_is_not_lost() -> None:
    proposal = make_proposal(1e-300)
    log_q = proposal.log_probability(torch.tensor([3]), torch.tensor([[5]]))
    assert log_q.item() == pytest.approx(np.log(1e-300) + np.log(0.05))


def test_keys_do_not_overflow_on_a_large_catalogue() -> None:
    # (C - 1) * C + C - 1 needs 36 bits; the pair is found and its neighbours are not.
    size = 200_000
    counts = np.ones(size)
    proposal = BigramProposal(counts, np.array([size - 1]), np.array([size - 2]), unigram_share=0.5)
    rows = torch.tensor([[size - 2, size - 1, 0]])
    actual = proposal.log_probability(torch.tensor([size - 1]), rows).exp()
    assert_close(actual.tolist(), [[0.5 + 0.5 / size, 0.5 / size, 0.5 / size]])


def test_the_sampler_gives_each_query_a_sample_and_its_q() -> None:
    sampler = BigramSampler(make_proposal(), num_sampled=50)
    last_rows = torch.tensor([0, -1, 3])
    positives = torch.tensor([3, 0, 5])
    result = draw(sampler, DrawRequest(positives, last_rows=last_rows), make_generator(0))
    assert result.rows.shape == result.log_q.shape == (3, 50)
    assert result.num_draws == 50
    expected = probabilities(make_proposal(), last_rows.tolist())
    assert_close(
        result.positive_log_q, (50 * expected.gather(1, positives[:, None])[:, 0]).log().float()
    )
    assert_close(result.log_q, (50 * expected.gather(1, result.rows)).log().float())
    again = draw(sampler, DrawRequest(positives, last_rows=last_rows), make_generator(0))
    assert torch.equal(result.rows, again.rows)


def test_the_sampler_names_the_q_of_shared_rows_by_query() -> None:
    sampler = BigramSampler(make_proposal(), num_sampled=4)
    request = DrawRequest(torch.tensor([3, 0]), last_rows=torch.tensor([0, 3]))
    sample = sampler.sample(request, make_generator(0))
    actual = sample.log_expected_count(torch.arange(6)).exp()
    assert_close(actual, 4 * probabilities(make_proposal(), [0, 3]))
    assert sample.expected_size == 4
    assert_close(actual.sum(dim=1).tolist(), [4.0, 4.0])


def test_draws_of_a_mixture_follow_its_q() -> None:
    mixed = MixedSampler(
        [
            BigramSampler(make_proposal(), num_sampled=6_000),
            WithReplacementSampler(UniformProposal(6), num_sampled=2_000),
            InBatchSampler(ExactPopularity(COUNTS)),
        ]
    )
    request = DrawRequest(torch.tensor([3, 0, 4]), last_rows=torch.tensor([0, 3, 1]))
    result = draw(mixed, request, make_generator(4))
    assert result.rows.shape == (3, 8_003)
    sample = mixed.sample(request, make_generator(4))
    expected = sample.log_expected_count(torch.arange(6)).exp()  # [3, 6]
    parts = 6_000 * probabilities(make_proposal(), [0, 3, 1]) + 2_000 / 6
    assert_close(expected, parts + 3 * torch.from_numpy(COUNTS) / 20)
    for query in range(3):
        # The three positives are no draws: they and their share of Q stay out of the test.
        assert chi_square(result.rows[query, :8_000], parts[query]) < CRITICAL[5]
    assert_close(result.log_q, expected.gather(1, result.rows).log().float())


def test_has_no_state() -> None:
    sampler = BigramSampler(make_proposal(), num_sampled=4)
    sampler.update(torch.tensor([0]), torch.zeros(1, 2))
    assert sampler.state_dict() == {}
    sampler.load_state_dict({})
    with pytest.raises(FormatError, match="state must be empty"):
        sampler.load_state_dict({"x": torch.zeros(1)})


def test_names_what_is_wrong() -> None:
    for share in (0.0, 1.5, float("nan")):
        with pytest.raises(ArgumentError, match=r"`unigram_share` must be in \(0, 1\], got"):
            make_proposal(share)
    with pytest.raises(ArgumentError, match=r"`previous_rows` must be in \[0, 2\), got 2"):
        BigramProposal(np.ones(2), np.array([2]), np.array([0]), unigram_share=0.5)
    with pytest.raises(ArgumentError, match=r"`next_rows` must be in \[0, 2\), got -1"):
        BigramProposal(np.ones(2), np.array([0]), np.array([-1]), unigram_share=0.5)
    with pytest.raises(ShapeError, match=r"`next_rows` must have shape \[1\]"):
        BigramProposal(np.ones(2), np.array([0]), np.array([0, 1]), unigram_share=0.5)
    with pytest.raises(ArgumentError, match="`num_sampled` must be above 0, got 0"):
        BigramSampler(make_proposal(), num_sampled=0)
    sampler = BigramSampler(make_proposal(), num_sampled=2)
    with pytest.raises(ArgumentError, match="`last_rows` must be given to a bigram sampler"):
        draw(sampler, DrawRequest(torch.tensor([0])), make_generator(0))
    for last in (-2, 6):
        with pytest.raises(ArgumentError, match=rf"`last_rows` must be in \[-1, 6\), got {last}"):
            make_proposal().draw(torch.tensor([last]), 1, make_generator(0))
    with pytest.raises(ShapeError, match=r"`rows` must have shape \[2, any\]"):
        make_proposal().log_probability(torch.tensor([0, 1]), torch.zeros(3, 1, dtype=torch.int64))
