"""What each sampler attaches to its draws, Q by hand, and what it refuses."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from recsys.foundations import ArgumentError, FormatError, ShapeError, make_generator
from recsys.sampling import (
    DeduplicatedSampler,
    DistinctSampler,
    Draw,
    DrawRequest,
    ExactPopularity,
    InBatchSampler,
    IndependentSampler,
    LearnedUnigramProposal,
    LogUniformProposal,
    MixedSampler,
    PerQuerySampler,
    PopularityProposal,
    Sample,
    Sampler,
    StoredVectors,
    UniformProposal,
    WithReplacementSampler,
    draw,
    inclusion_probability,
    inclusion_probability_without_replacement,
    popularity_probabilities,
)

COUNTS = np.array([40, 0, 8, 1, 16, 2, 33, 4, 20, 12])


def make_uniform(num_sampled: int = 7) -> WithReplacementSampler:
    return WithReplacementSampler(UniformProposal(len(COUNTS)), num_sampled=num_sampled)


def make_popularity(alpha: float = 0.75, num_sampled: int = 7) -> WithReplacementSampler:
    proposal = PopularityProposal(COUNTS, alpha=alpha)
    return WithReplacementSampler(proposal, num_sampled=num_sampled)


def make_in_batch() -> InBatchSampler:
    return InBatchSampler(ExactPopularity(COUNTS))


def make_mixed() -> MixedSampler:
    return MixedSampler([make_popularity(), make_in_batch(), make_uniform(3)])


def sample_for(sampler: Sampler, positives: list[int], seed: int = 0) -> Sample:
    return sampler.sample(DrawRequest(torch.tensor(positives)), make_generator(seed))


def draw_for(sampler: Sampler, positives: list[int], seed: int = 0) -> Draw:
    return draw(sampler, DrawRequest(torch.tensor(positives)), make_generator(seed))


def expected_counts(sampler: Sampler, batch_size: int) -> torch.Tensor:
    sample = sample_for(sampler, [0] * batch_size)
    return sample.log_expected_count(torch.arange(len(COUNTS))).exp()


EVERY_SAMPLER: dict[str, Callable[[], Sampler]] = {
    "uniform": make_uniform,
    "popularity": make_popularity,
    "unigram": lambda: make_popularity(alpha=1.0),
    "rare first": lambda: make_popularity(alpha=-0.5),
    "alpha above one": lambda: make_popularity(alpha=1.5),
    "deduplicated": lambda: DeduplicatedSampler(UniformProposal(len(COUNTS)), num_draws=7),
    "independent": lambda: IndependentSampler(LogUniformProposal(COUNTS), num_sampled=7),
    "distinct": lambda: DistinctSampler(PopularityProposal(COUNTS, alpha=1.0), num_sampled=5),
    "per query": lambda: PerQuerySampler(UniformProposal(len(COUNTS)), num_sampled=7),
    "in batch": make_in_batch,
    "mixed": make_mixed,
}


LEARNING: dict[str, Callable[[], Sampler]] = {
    "with replacement": lambda: WithReplacementSampler(LearnedUnigramProposal(4), num_sampled=9),
    "deduplicated": lambda: DeduplicatedSampler(LearnedUnigramProposal(4), num_draws=9),
    "independent": lambda: IndependentSampler(LearnedUnigramProposal(4), num_sampled=9),
    "distinct": lambda: DistinctSampler(LearnedUnigramProposal(4), num_sampled=1),
    "per query": lambda: PerQuerySampler(LearnedUnigramProposal(4), num_sampled=9),
}


@pytest.mark.parametrize("name", ["uniform", "popularity", "rare first", "in batch", "mixed"])
def test_expected_counts_sum_to_the_number_of_columns(name: str) -> None:
    sampler = EVERY_SAMPLER[name]()
    sample = sample_for(sampler, [0] * 5)
    assert sample.expected_size == len(sample.rows)
    assert expected_counts(sampler, 5).sum().item() == pytest.approx(len(sample.rows), rel=1e-12)


@pytest.mark.parametrize("name", EVERY_SAMPLER)
def test_attaches_the_q_of_each_column_and_of_each_positive(name: str) -> None:
    sampler, positives = EVERY_SAMPLER[name](), [0, 6, 0]
    drawn, sample = draw_for(sampler, positives, seed=1), sample_for(sampler, positives, seed=1)
    assert torch.equal(drawn.rows, sample.rows)
    assert drawn.num_draws == sample.expected_size
    assert drawn.rows.dtype == torch.int64
    assert drawn.log_q.dtype == drawn.positive_log_q.dtype == torch.float32
    log_q = sample.log_expected_count(torch.arange(len(COUNTS))).float()
    assert_close(drawn.log_q, log_q[drawn.rows])
    assert_close(drawn.positive_log_q, log_q[positives])


@pytest.mark.parametrize("name", EVERY_SAMPLER)
def test_repeats_its_draws_from_the_same_seed(name: str) -> None:
    first, again = (draw_for(EVERY_SAMPLER[name](), [0, 6, 4, 8], seed=5) for _ in range(2))
    assert torch.equal(first.rows, again.rows)
    assert torch.equal(first.log_q, again.log_q)


@pytest.mark.parametrize("name", EVERY_SAMPLER)
def test_has_no_state_and_refuses_that_of_another_sampler(name: str) -> None:
    sampler = EVERY_SAMPLER[name]()
    assert sampler.state_dict() == {}
    sampler.load_state_dict({})
    with pytest.raises(FormatError, match="must be empty for this sampler"):
        sampler.load_state_dict({"0.counts": torch.zeros(1)})


@pytest.mark.parametrize("name", EVERY_SAMPLER)
@pytest.mark.parametrize("row", [-1, 10])
def test_refuses_positives_outside_the_catalogue(name: str, row: int) -> None:
    with pytest.raises(ArgumentError, match=rf"must be in \[0, 10\), got {row}"):
        draw_for(EVERY_SAMPLER[name](), [0, row])


def test_uniform_q_by_hand() -> None:
    drawn = draw_for(make_uniform(num_sampled=5), [3])
    assert_close(drawn.log_q, torch.full((5,), math.log(5 / 10)))
    assert_close(drawn.positive_log_q, torch.tensor([math.log(0.5)]))


def test_each_query_has_draws_of_its_own_and_the_q_of_its_sample_by_hand() -> None:
    # p = 1/2, 1/4, 1/4 and 2,000 draws for each of three queries: Q is 1,000 and 500, not thrice.
    proposal = PopularityProposal(np.array([2, 1, 1]), alpha=1.0)
    drawn = draw_for(PerQuerySampler(proposal, num_sampled=2000), [0, 1, 2])
    assert drawn.rows.shape == (3, 2000)
    expected = torch.tensor([1000.0, 500.0, 500.0])
    assert_close(drawn.log_q, expected.log()[drawn.rows])
    assert_close(drawn.positive_log_q, expected.log())
    assert drawn.num_draws == 2000
    for rows in drawn.rows:
        counts = torch.bincount(rows, minlength=3)
        assert ((counts - expected).abs() < 4 * (expected * (1 - expected / 2000)).sqrt()).all()
    for first, second in ((0, 1), (1, 2), (0, 2)):  # alike by chance: 3/8
        alike = (drawn.rows[first] == drawn.rows[second]).double().mean().item()
        assert abs(alike - 3 / 8) < 4 * (3 / 8 * 5 / 8 / 2000) ** 0.5


def test_deduplicated_and_independent_q_by_hand() -> None:
    # p = 1/2 and 1/4, T = 2: 1 - (1/2)^2 = 3/4, 1 - (3/4)^2 = 7/16. On coins: 1 - e^-1, 1 - e^-1/2.
    proposal, rows = PopularityProposal(np.array([2, 1, 1]), alpha=1.0), torch.tensor([0, 1])
    once = sample_for(DeduplicatedSampler(proposal, num_draws=2), [0])
    assert once.log_expected_count(rows).exp().tolist() == pytest.approx([3 / 4, 7 / 16])
    assert once.expected_size == pytest.approx(3 / 4 + 2 * 7 / 16)
    coins = sample_for(IndependentSampler(proposal, num_sampled=2), [0])
    assert coins.log_expected_count(rows).exp().tolist() == pytest.approx(
        [1 - math.exp(-1), 1 - math.exp(-1 / 2)]
    )
    assert coins.expected_size == pytest.approx(3 - math.exp(-1) - 2 * math.exp(-1 / 2))


def test_q_of_rare_candidates_keeps_its_digits() -> None:
    # p of 1e-15: 1 - (1 - p)^T = T p to 13 digits, where the formula as written gives 0.
    proposal = PopularityProposal(np.array([10**15, 1]), alpha=1.0)
    expected = pytest.approx(1e-15 * 5, rel=1e-12)
    for sampler in (
        DeduplicatedSampler(proposal, num_draws=5),
        IndependentSampler(proposal, num_sampled=5),
    ):
        sample = sample_for(sampler, [0])
        assert sample.log_expected_count(torch.tensor([1])).exp().item() == expected


@pytest.mark.parametrize("name", LEARNING)
def test_a_sampler_passes_what_it_learns_on_to_its_proposal(name: str) -> None:
    sampler, other = LEARNING[name](), LEARNING[name]()
    before = draw_for(sampler, [2])
    sampler.update(torch.tensor([2] * 8), torch.zeros(8, 4))
    after = draw_for(sampler, [2])
    assert after.positive_log_q > before.positive_log_q
    stated = sample_for(sampler, [2]).log_expected_count(torch.arange(4)).exp().sum().item()
    assert after.num_draws == pytest.approx(stated)
    other.load_state_dict(sampler.state_dict())
    again = draw_for(other, [2])
    assert torch.equal(again.rows, after.rows)
    assert torch.equal(again.positive_log_q, after.positive_log_q)
    assert again.num_draws == after.num_draws


def test_in_batch_q_by_hand() -> None:
    # 136 events, a batch of 4: a candidate of 40 events is expected 4 * 40 / 136 times.
    drawn = draw_for(make_in_batch(), [0, 8, 0, 3])
    assert drawn.rows.tolist() == [0, 8, 0, 3]
    assert_close(drawn.log_q, torch.tensor([160.0, 80, 160, 4]).div(136).log())
    assert_close(drawn.positive_log_q, drawn.log_q)
    assert drawn.own_columns is not None
    assert drawn.own_columns.tolist() == [0, 1, 2, 3]


def test_in_batch_q_of_groups_counts_the_columns_of_other_groups_by_hand() -> None:
    # Rows of the group of three see one column of another group, the single row sees three: 1.5 in
    # the mean. A candidate of 40 of the 136 events is expected 1.5 * 40 / 136 times.
    request = DrawRequest(torch.tensor([0, 8, 0, 3]), groups=torch.tensor([7, 7, 5, 7]))
    drawn = draw(make_in_batch(), request, make_generator(0))
    assert_close(drawn.log_q, torch.tensor([60.0, 30, 60, 1.5]).div(136).log())
    assert_close(drawn.positive_log_q, drawn.log_q)
    assert drawn.num_draws == 1.5
    assert drawn.own_columns is None
    assert drawn.column_groups is not None
    assert drawn.column_groups.tolist() == [7, 7, 5, 7]
    alone = draw(make_in_batch(), request.take(torch.tensor([0])), make_generator(0))
    assert_close(alone.log_q, torch.tensor([40.0]).div(136).log())  # no other group: as of one


def test_of_many_positives_in_groups_some_are_the_columns() -> None:
    rows, groups = torch.tensor([0, 8, 2, 3, 4, 5]), torch.tensor([7, 7, 5, 7, 5, 2])
    sampler = InBatchSampler(ExactPopularity(COUNTS), max_columns=2)
    seen = set()
    for seed in range(200):
        drawn = draw(sampler, DrawRequest(rows, groups=groups), make_generator(seed))
        assert drawn.column_groups is not None
        places = [rows.tolist().index(row) for row in drawn.rows.tolist()]
        assert drawn.column_groups.tolist() == groups[places].tolist()
        # Each column counts in the rows of other groups: 3, 2 and 1 of the six are of its own.
        others = sum({7: 3, 5: 4, 2: 5}[int(group)] for group in drawn.column_groups)
        assert drawn.num_draws == pytest.approx(others / 6)
        seen.add(tuple(sorted(places)))
    assert len(seen) == 15  # every pair of the six


def test_positives_that_come_one_by_one_are_all_columns() -> None:
    sampler = InBatchSampler(ExactPopularity(COUNTS), max_columns=2)
    assert draw_for(sampler, [0, 8, 2, 3]).rows.tolist() == [0, 8, 2, 3]
    with pytest.raises(ArgumentError, match="`max_columns`"):
        InBatchSampler(ExactPopularity(COUNTS), max_columns=0)


def test_mixed_says_which_columns_came_in_groups() -> None:
    request = DrawRequest(torch.tensor([0, 8, 3]), groups=torch.tensor([7, 0, 7]))
    sampler = MixedSampler([make_uniform(2), make_in_batch()])
    drawn = draw(sampler, request, make_generator(0))
    assert drawn.column_groups is not None
    assert drawn.column_groups.tolist() == [-1, -1, 7, 0, 7]
    with pytest.raises(ArgumentError, match="at most one that gives the positives themselves"):
        draw(MixedSampler([make_in_batch(), make_in_batch()]), request, make_generator(0))


def test_groups_are_one_number_for_each_positive() -> None:
    with pytest.raises(ShapeError, match="`groups` must have shape"):
        DrawRequest(torch.tensor([0, 8]), groups=torch.tensor([7]))


def test_in_batch_q_is_exact_for_batches_of_a_shuffled_epoch() -> None:
    # Every batch of 2 of the events 0, 0, 0, 1, 2 equally often: 10 batches. Candidate 0 stands in
    # them 12 times, 1 and 2 four times: a mean of 2 * count / 5.
    events = torch.tensor([0, 0, 0, 1, 2])
    batches = torch.combinations(events)
    mean_counts = torch.bincount(batches.flatten()).double() / len(batches)
    popularity = ExactPopularity(np.array([3, 1, 1]))
    assert_close(popularity.log_rate(torch.arange(3), 2).exp(), mean_counts)
    assert popularity.log_rate(torch.arange(3), 0).tolist() == [-math.inf] * 3


def test_exact_popularity_knows_all_and_has_no_state() -> None:
    popularity = ExactPopularity(COUNTS)
    popularity.update(torch.tensor([1]))
    assert popularity.log_rate(torch.tensor([[1], [3]]), 136).exp().tolist() == [
        [0.0],
        [pytest.approx(1.0)],
    ]
    assert popularity.state_dict() == {}
    with pytest.raises(FormatError, match="must be empty for this sampler"):
        popularity.load_state_dict({"counts": torch.zeros(1)})


def test_mixed_q_is_the_sum_of_the_samplers() -> None:
    parts: list[Sampler] = [make_popularity(), make_in_batch(), make_uniform(3)]
    mixed = expected_counts(MixedSampler(parts), 4)
    assert_close(mixed, torch.stack([expected_counts(part, 4) for part in parts]).sum(dim=0))
    assert draw_for(MixedSampler(parts), [0, 2, 2, 9]).num_draws == 7 + 4 + 3
    # Row 1 has no event: only the uniform sampler reaches it, 3 / 10 times.
    assert mixed[1].item() == pytest.approx(0.3)


def test_mixed_says_where_the_positives_stand_in_the_union() -> None:
    drawn = draw_for(make_mixed(), [0, 2, 2, 9])
    assert drawn.own_columns is not None
    assert drawn.rows[drawn.own_columns].tolist() == [0, 2, 2, 9]
    assert drawn.own_columns.tolist() == [7, 8, 9, 10]
    without = draw_for(MixedSampler([make_uniform()]), [0, 2, 2, 9])
    assert without.own_columns is None


@pytest.mark.parametrize("name", ["popularity", "in batch"])
def test_names_a_positive_that_is_never_drawn(name: str) -> None:
    with pytest.raises(ArgumentError, match=r"got row 1 \(2 in this batch\), whose expected count"):
        draw_for(EVERY_SAMPLER[name](), [0, 1, 1])


def test_mixture_reaches_a_positive_that_one_sampler_does_not() -> None:
    assert torch.isfinite(draw_for(make_mixed(), [1]).positive_log_q).all()


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: UniformProposal(0), "`num_candidates` must be above 0, got 0"),
        (lambda: make_uniform(num_sampled=0), "`num_sampled` must be above 0, got 0"),
        (lambda: make_popularity(num_sampled=-1), "`num_sampled` must be above 0, got -1"),
        (
            lambda: DeduplicatedSampler(UniformProposal(3), num_draws=0),
            "`num_draws` must be above 0, got 0",
        ),
        (
            lambda: IndependentSampler(UniformProposal(3), num_sampled=0),
            "`num_sampled` must be above 0, got 0",
        ),
        (lambda: make_popularity(alpha=float("nan")), "`alpha` must be finite, got nan"),
        (lambda: ExactPopularity(np.array([0, 0])), "`counts` must hold one value above 0"),
        (lambda: ExactPopularity(np.array([3, -1])), "`counts` must be finite and not negative"),
        (lambda: MixedSampler([]), "`samplers` must hold at least one sampler"),
        (
            lambda: sample_for(MixedSampler([make_in_batch(), make_in_batch()]), [0]),
            "at most one that gives the positives themselves, got 2",
        ),
    ],
)
def test_names_the_argument_that_is_wrong(build: Callable[[], object], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        build()


def test_popularity_by_hand() -> None:
    # 100^0.75 : 1 = 31.62 : 1, word2vec's example.
    p = popularity_probabilities(np.array([100, 1, 0]), 0.75)
    assert p[0] / p[1] == pytest.approx(31.6228, abs=1e-4)
    assert p[2] == 0
    assert p.sum() == pytest.approx(1, abs=1e-15)
    # Powers far beyond float64's range still give probabilities.
    assert popularity_probabilities(np.array([10**6, 1]), 200.0).tolist() == [1.0, 0.0]


def test_inclusion_by_hand() -> None:
    # Two draws with p = 1/2: 3/4. Two of the events a, a, b: a is missed never, b in 1 of 3 pairs.
    assert inclusion_probability(np.array([0.5]), 2) == pytest.approx(0.75)
    actual = inclusion_probability_without_replacement(np.array([2, 1, 0]), 2)
    assert actual.tolist() == pytest.approx([1, 2 / 3, 0])
    with pytest.raises(ArgumentError, match="`draw_probability` must be in"):
        inclusion_probability(np.array([1.5]), 2)
    with pytest.raises(ArgumentError, match=r"`num_draws` must be in \[0, 3\], got 4"):
        inclusion_probability_without_replacement(np.array([2, 1]), 4)


def test_a_draw_checks_its_shapes() -> None:
    rows, log_q = torch.zeros(3, dtype=torch.int64), torch.zeros(3)
    with pytest.raises(ShapeError, match=r"`log_q` must have shape \[3\]"):
        Draw(rows, torch.zeros(2), torch.zeros(4), 3)
    with pytest.raises(ShapeError, match=r"`own_columns` must have shape \[4\]"):
        Draw(rows, log_q, torch.zeros(4), 3, own_columns=torch.arange(3))
    with pytest.raises(ShapeError, match="`positive_rows` must have shape"):
        DrawRequest(torch.zeros(2, 2, dtype=torch.int64))
    with pytest.raises(ShapeError, match=r"`last_rows` must have shape \[3\]"):
        DrawRequest(rows, last_rows=torch.zeros(2))
    with pytest.raises(ShapeError, match=r"`query_embeddings` must have shape \[3, any\]"):
        DrawRequest(rows, query_embeddings=torch.zeros(2, 4))
    with pytest.raises(ShapeError, match=r"`vectors` must have shape \[3, any\]"):
        StoredVectors(rows, torch.zeros(2, 4))
