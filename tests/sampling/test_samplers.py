"""Each sampler's draws against the Q it states, and what it refuses."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from recsys.foundations import ArgumentError, FormatError, ShapeError, make_generator
from recsys.sampling import (
    Draw,
    InBatchSampler,
    MixedSampler,
    PopularitySampler,
    Stream,
    UniformSampler,
    inclusion_probability,
    inclusion_probability_without_replacement,
    popularity_probabilities,
)

COUNTS = np.array([40, 0, 8, 1, 16, 2, 33, 4, 20, 12])
# By degrees of freedom: the chi-square value that one seed in 1000 exceeds.
CRITICAL = {8: 26.12, 9: 27.88}


def make_uniform(num_sampled: int = 7) -> UniformSampler:
    return UniformSampler(len(COUNTS), num_sampled=num_sampled)


def make_popularity(alpha: float = 0.75, num_sampled: int = 7) -> PopularitySampler:
    return PopularitySampler(COUNTS, alpha=alpha, num_sampled=num_sampled)


def make_mixed() -> MixedSampler:
    return MixedSampler([make_popularity(), InBatchSampler(COUNTS), make_uniform(3)])


def draw_batch(generator: torch.Generator, size: int) -> torch.Tensor:
    """Draw positives as an endless log would give them: by the counts."""
    probabilities = torch.from_numpy(COUNTS / COUNTS.sum())
    return torch.multinomial(probabilities, size, replacement=True, generator=generator)


EVERY_SAMPLER: dict[str, Callable[[], Stream]] = {
    "uniform": make_uniform,
    "popularity": make_popularity,
    "unigram": lambda: make_popularity(alpha=1.0),
    "rare first": lambda: make_popularity(alpha=-0.5),
    "alpha above one": lambda: make_popularity(alpha=1.5),
    "in batch": lambda: InBatchSampler(COUNTS),
    "mixed": make_mixed,
}


@pytest.mark.parametrize("name", EVERY_SAMPLER)
def test_draws_as_often_as_its_log_q_says(name: str) -> None:
    sampler, generator = EVERY_SAMPLER[name](), make_generator(3, name)
    batch_size, num_batches = 5, 4_000
    counts = np.zeros(len(COUNTS))
    for _ in range(num_batches):
        draw = sampler.draw(draw_batch(generator, batch_size), generator)
        counts += np.bincount(draw.rows.numpy(), minlength=len(COUNTS))
    log_q = sampler.log_expected_count(torch.arange(len(COUNTS)), batch_size)
    expected = num_batches * log_q.exp().numpy()
    reachable = expected > 0
    assert counts[~reachable].sum() == 0
    # Over many batches each stream's counts are multinomial, so this is chi-square for one stream
    # and below it for a sum of streams.
    chi_square = ((counts - expected)[reachable] ** 2 / expected[reachable]).sum()
    assert chi_square < CRITICAL[int(reachable.sum()) - 1]


@pytest.mark.parametrize("name", EVERY_SAMPLER)
def test_expected_counts_sum_to_the_number_of_columns(name: str) -> None:
    sampler = EVERY_SAMPLER[name]()
    total = sampler.log_expected_count(torch.arange(len(COUNTS)), 5).exp().sum().item()
    assert total == pytest.approx(sampler.num_columns(5), rel=1e-12)


@pytest.mark.parametrize("name", EVERY_SAMPLER)
def test_attaches_the_q_of_each_column_and_of_each_positive(name: str) -> None:
    sampler, positives = EVERY_SAMPLER[name](), torch.tensor([0, 6, 0])
    draw = sampler.draw(positives, make_generator(1))
    assert draw.num_draws == len(draw.rows) == sampler.num_columns(3)
    assert draw.rows.dtype == torch.int64
    assert draw.log_q.dtype == draw.positive_log_q.dtype == torch.float32
    assert_close(draw.log_q, sampler.log_expected_count(draw.rows, 3).float())
    assert_close(draw.positive_log_q, sampler.log_expected_count(positives, 3).float())


@pytest.mark.parametrize("name", EVERY_SAMPLER)
def test_repeats_its_draws_from_the_same_seed(name: str) -> None:
    positives = torch.tensor([0, 6, 4, 8])
    first, again = (
        EVERY_SAMPLER[name]().draw(positives, make_generator(5, name)) for _ in range(2)
    )
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
        EVERY_SAMPLER[name]().draw(torch.tensor([0, row]), make_generator(0))


def test_uniform_q_by_hand() -> None:
    draw = make_uniform(num_sampled=5).draw(torch.tensor([3]), make_generator(0))
    assert_close(draw.log_q, torch.full((5,), math.log(5 / 10)))
    assert_close(draw.positive_log_q, torch.tensor([math.log(0.5)]))


def test_in_batch_q_by_hand() -> None:
    # 136 events, a batch of 4: a candidate of 40 events is expected 4 * 40 / 136 times.
    draw = InBatchSampler(COUNTS).draw(torch.tensor([0, 8, 0, 3]), make_generator(0))
    assert draw.rows.tolist() == [0, 8, 0, 3]
    assert_close(draw.log_q, torch.tensor([160.0, 80, 160, 4]).div(136).log())
    assert_close(draw.positive_log_q, draw.log_q)
    assert draw.own_columns is not None
    assert draw.own_columns.tolist() == [0, 1, 2, 3]


def test_in_batch_q_is_exact_for_batches_of_a_shuffled_epoch() -> None:
    # Every batch of 2 of the events 0, 0, 0, 1, 2 equally often: 10 batches. Candidate 0 stands in
    # them 12 times, 1 and 2 four times: a mean of 2 * count / 5.
    events = torch.tensor([0, 0, 0, 1, 2])
    batches = torch.combinations(events)
    mean_counts = torch.bincount(batches.flatten()).double() / len(batches)
    sampler = InBatchSampler(np.array([3, 1, 1]))
    assert_close(sampler.log_expected_count(torch.arange(3), 2).exp(), mean_counts)


def test_mixed_q_is_the_sum_of_the_streams() -> None:
    parts: list[Stream] = [make_popularity(), InBatchSampler(COUNTS), make_uniform(3)]
    everything = torch.arange(len(COUNTS))
    expected = sum(part.log_expected_count(everything, 4).exp() for part in parts)
    mixed = MixedSampler(parts)
    assert_close(mixed.log_expected_count(everything, 4).exp(), expected)
    draw = mixed.draw(torch.tensor([0, 2, 2, 9]), make_generator(0))
    assert draw.num_draws == 7 + 4 + 3
    # Row 1 has no event: only the uniform stream reaches it, 3 / 10 times.
    assert mixed.log_expected_count(torch.tensor([1]), 4).exp().item() == pytest.approx(0.3)


def test_mixed_says_where_the_positives_stand_in_the_union() -> None:
    positives = torch.tensor([0, 2, 2, 9])
    draw = make_mixed().draw(positives, make_generator(0))
    assert draw.own_columns is not None
    assert torch.equal(draw.rows[draw.own_columns], positives)
    assert draw.own_columns.tolist() == [7, 8, 9, 10]
    without = MixedSampler([make_uniform()]).draw(positives, make_generator(0))
    assert without.own_columns is None


@pytest.mark.parametrize("name", ["popularity", "in batch"])
def test_names_a_positive_that_is_never_drawn(name: str) -> None:
    with pytest.raises(ArgumentError, match=r"got row 1 \(2 in this batch\), whose expected count"):
        EVERY_SAMPLER[name]().draw(torch.tensor([0, 1, 1]), make_generator(0))


def test_mixture_reaches_a_positive_that_one_stream_does_not() -> None:
    draw = make_mixed().draw(torch.tensor([1]), make_generator(0))
    assert torch.isfinite(draw.positive_log_q).all()


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: UniformSampler(0, num_sampled=1), "`num_candidates` must be above 0, got 0"),
        (lambda: UniformSampler(3, num_sampled=0), "`num_sampled` must be above 0, got 0"),
        (lambda: make_popularity(num_sampled=-1), "`num_sampled` must be above 0, got -1"),
        (lambda: make_popularity(alpha=float("nan")), "`alpha` must be finite, got nan"),
        (lambda: InBatchSampler(np.array([0, 0])), "`counts` must hold one value above 0"),
        (lambda: InBatchSampler(np.array([3, -1])), "`counts` must be finite and not negative"),
        (lambda: MixedSampler([]), "`streams` must hold at least one sampler"),
        (
            lambda: MixedSampler([InBatchSampler(COUNTS), InBatchSampler(COUNTS)]),
            "at most one in-batch sampler",
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
        make_uniform().draw(torch.zeros(2, 2, dtype=torch.int64), make_generator(0))
