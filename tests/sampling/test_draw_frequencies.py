"""How often candidates are drawn, by chi-square against the Q that is stated.

A sample's counts (or inclusions) of different candidates are correlated, each mode in its own way.
Summed over N samples they are close to normal, so ``d' V^+ d`` of the deviations d from N Q, with
V their exact covariance, is chi-square with as many degrees of freedom as V has rank.
"""

from collections.abc import Callable, Mapping

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import chi2

from recsys.foundations import make_generator
from recsys.sampling import (
    DeduplicatedSampler,
    DrawRequest,
    ExactPopularity,
    InBatchSampler,
    IndependentSampler,
    LearnedUnigramProposal,
    LogUniformProposal,
    MixedSampler,
    PopularityProposal,
    Proposal,
    Sample,
    Sampler,
    UniformProposal,
    WithReplacementSampler,
    draw,
)

Array = NDArray[np.float64]

COUNTS = np.array([40, 0, 8, 1, 16, 2, 33, 4, 20, 12])
NUM_CANDIDATES = len(COUNTS)
EVERYTHING = torch.arange(NUM_CANDIDATES)
SIZE = 6  # draws a sample
SAMPLES = 2000


def make_learned() -> LearnedUnigramProposal:
    proposal = LearnedUnigramProposal(NUM_CANDIDATES)
    proposal.update(torch.tensor([0, 6, 6, 6, 9, 0, 4, 6]))
    proposal.update(torch.tensor([6, 2, 9]))
    return proposal


PROPOSALS: dict[str, Callable[[], Proposal]] = {
    "uniform": lambda: UniformProposal(NUM_CANDIDATES),
    "log-uniform": lambda: LogUniformProposal(COUNTS),
    "learned unigram": make_learned,
} | {
    f"popularity {alpha}": lambda alpha=alpha: PopularityProposal(COUNTS, alpha=alpha)  # type: ignore[misc]
    for alpha in (-1.0, -0.5, 0.0, 0.75, 1.0, 1.5)
}
SAMPLERS: dict[str, Callable[[Proposal], Sampler]] = {
    "with replacement": lambda proposal: WithReplacementSampler(proposal, num_sampled=SIZE),
    "deduplicated": lambda proposal: DeduplicatedSampler(proposal, num_draws=SIZE),
    "independent": lambda proposal: IndependentSampler(proposal, num_sampled=SIZE),
}


def covariance_with_replacement(p: Array) -> Array:
    return SIZE * (np.diag(p) - np.outer(p, p))


def covariance_deduplicated(p: Array) -> Array:
    # i and j are both missed with chance (1 - p_i - p_j)^T.
    missed = (1 - p) ** SIZE
    both = (1 - p[:, None] - p[None, :]) ** SIZE
    np.fill_diagonal(both, missed)
    return both - np.outer(missed, missed)


def covariance_independent(p: Array) -> Array:
    missed = np.exp(-SIZE * p)
    return np.diag(missed * (1 - missed))


COVARIANCES: dict[str, Callable[[Array], Array]] = {
    "with replacement": covariance_with_replacement,
    "deduplicated": covariance_deduplicated,
    "independent": covariance_independent,
}


def check_chi_square(counts: Array, expected: Array, covariance: Array) -> None:
    deviations = counts - expected
    assert np.abs(deviations[expected == 0]).sum() == 0
    statistic = deviations @ np.linalg.pinv(covariance, rcond=1e-10, hermitian=True) @ deviations
    freedom = np.linalg.matrix_rank(covariance, tol=1e-10 * covariance.max(), hermitian=True)
    assert chi2.sf(statistic, freedom) > 1e-4  # one seed in 10,000 would fail


def probabilities_of(proposal: Proposal) -> Array:
    return proposal.log_probability(EVERYTHING).exp().numpy()


def count_rows(rows: torch.Tensor) -> Array:
    return np.bincount(rows.flatten(), minlength=NUM_CANDIDATES).astype(np.float64)


def stated_counts(sample: Sample) -> Array:
    """Give [C], or [B, C] where Q differs by query."""
    return sample.log_expected_count(EVERYTHING).exp().numpy()


def draw_positives(size: int, generator: torch.Generator) -> torch.Tensor:
    """Draw positives as an endless log would give them: by the counts."""
    weights = torch.from_numpy(COUNTS).double()
    return torch.multinomial(weights, size, replacement=True, generator=generator)


@pytest.mark.parametrize("mode", SAMPLERS)
@pytest.mark.parametrize("name", PROPOSALS)
def test_candidates_come_as_often_as_stated(name: str, mode: str) -> None:
    proposal, generator = PROPOSALS[name](), make_generator(1, name, mode)
    sampler, request = SAMPLERS[mode](proposal), DrawRequest(torch.tensor([0]))
    samples = [sampler.sample(request, generator) for _ in range(SAMPLES)]
    if mode != "with replacement":
        assert all(len(sample.rows.unique()) == len(sample.rows) for sample in samples)
    counts = count_rows(torch.cat([sample.rows for sample in samples]))
    covariance = COVARIANCES[mode](probabilities_of(proposal))
    check_chi_square(counts, SAMPLES * stated_counts(samples[0]), SAMPLES * covariance)


@pytest.mark.parametrize("mode", SAMPLERS)
@pytest.mark.parametrize("name", PROPOSALS)
def test_the_expected_size_is_the_mean_size(name: str, mode: str) -> None:
    proposal, generator = PROPOSALS[name](), make_generator(2, name, mode)
    sampler, request = SAMPLERS[mode](proposal), DrawRequest(torch.tensor([0]))
    samples = [sampler.sample(request, generator) for _ in range(400)]
    assert samples[0].expected_size == pytest.approx(stated_counts(samples[0]).sum(), rel=1e-12)
    variance = max(COVARIANCES[mode](probabilities_of(proposal)).sum(), 0)  # 0 but for rounding
    mean = np.mean([len(sample.rows) for sample in samples])
    assert abs(mean - samples[0].expected_size) < 4 * (variance / len(samples)) ** 0.5 + 1e-6


@pytest.mark.parametrize("name", PROPOSALS)
def test_independent_inclusions_do_not_know_of_each_other(name: str) -> None:
    # The variance of the size is the sum of q (1 - q) only if no two inclusions are correlated; for
    # deduplicated draws it is far smaller. Its relative standard error is about sqrt(2 / 2000).
    generator, request = make_generator(3, name), DrawRequest(torch.tensor([0]))
    sampler = SAMPLERS["independent"](PROPOSALS[name]())
    samples = [sampler.sample(request, generator) for _ in range(SAMPLES)]
    q = stated_counts(samples[0])
    variance = np.var([len(sample.rows) for sample in samples])
    assert variance == pytest.approx((q * (1 - q)).sum(), rel=4 * (2 / SAMPLES) ** 0.5)


class NextSampler:
    """One sample a query, with replacement, from a distribution given the last item."""

    def __init__(self, num_sampled: int) -> None:
        generator = make_generator(0, "next")
        weights = torch.rand(NUM_CANDIDATES, NUM_CANDIDATES, generator=generator).double()
        self.table = weights / weights.sum(dim=1, keepdim=True)
        self._num_sampled = num_sampled

    def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:
        assert request.last_rows is not None
        p = self.table[request.last_rows]  # [B, C]
        rows = torch.multinomial(p, self._num_sampled, replacement=True, generator=generator)

        def log_expected_count(rows: torch.Tensor) -> torch.Tensor:
            return (self._num_sampled * p.gather(1, rows.expand(len(p), rows.shape[-1]))).log()

        return Sample(rows, log_expected_count, expected_size=self._num_sampled)

    def update(self, positive_rows: torch.Tensor, positive_embeddings: torch.Tensor) -> None:
        """Learn nothing."""

    def state_dict(self) -> dict[str, torch.Tensor]:
        return {}

    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        """Take nothing."""


def make_mixture(*more: Sampler) -> MixedSampler:
    return MixedSampler(
        [
            SAMPLERS["with replacement"](PROPOSALS["popularity 0.75"]()),
            InBatchSampler(ExactPopularity(COUNTS)),
            SAMPLERS["deduplicated"](PROPOSALS["popularity -0.5"]()),
            SAMPLERS["independent"](PROPOSALS["log-uniform"]()),
            *more,
        ]
    )


def mixture_covariance() -> Array:
    """Give that of `make_mixture()` for a batch of SIZE."""
    p = {name: probabilities_of(make()) for name, make in PROPOSALS.items()}
    return (
        covariance_with_replacement(p["popularity 0.75"])
        + covariance_with_replacement(COUNTS / COUNTS.sum())
        + covariance_deduplicated(p["popularity -0.5"])
        + covariance_independent(p["log-uniform"])
    )


def test_a_mixture_of_all_modes_draws_as_often_as_stated() -> None:
    generator, sampler = make_generator(4, "mixture"), make_mixture()
    samples = [
        sampler.sample(DrawRequest(draw_positives(SIZE, generator)), generator)
        for _ in range(SAMPLES)
    ]
    counts = count_rows(torch.cat([sample.rows for sample in samples]))
    expected = stated_counts(samples[0])
    assert samples[0].expected_size == pytest.approx(expected.sum(), rel=1e-12)
    check_chi_square(counts, SAMPLES * expected, SAMPLES * mixture_covariance())


def test_a_mixture_with_one_sample_a_query_draws_as_often_as_stated_for_each() -> None:
    generator, last_rows = make_generator(5, "queries"), torch.tensor([0, 3, 3, 9, 5, 1])
    own = NextSampler(4)
    sampler = make_mixture(own)
    counts = np.zeros((SIZE, NUM_CANDIDATES))
    for _ in range(SAMPLES):
        request = DrawRequest(draw_positives(SIZE, generator), last_rows)
        sample = sampler.sample(request, generator)
        counts += np.stack([count_rows(rows) for rows in sample.rows])
    stated = stated_counts(sample)
    assert stated.shape == (SIZE, NUM_CANDIDATES)
    for query, last in enumerate(last_rows):
        p = own.table[last].numpy()
        covariance = mixture_covariance() + 4 * (np.diag(p) - np.outer(p, p))
        check_chi_square(counts[query], SAMPLES * stated[query], SAMPLES * covariance)


def test_a_draw_for_each_query_holds_that_querys_q_of_every_column() -> None:
    own, shared = NextSampler(3), SAMPLERS["with replacement"](PROPOSALS["uniform"]())
    positives, last_rows = torch.tensor([1, 2]), torch.tensor([4, 0])
    request = DrawRequest(positives, last_rows)
    drawn = draw(MixedSampler([shared, own]), request, make_generator(0))
    assert drawn.rows.shape == drawn.log_q.shape == (2, SIZE + 3)
    assert torch.equal(drawn.rows[0, :SIZE], drawn.rows[1, :SIZE])  # those of the shared sample
    for query in range(2):
        p = own.table[last_rows[query]]
        expected = (SIZE / NUM_CANDIDATES + 3 * p).log()
        assert drawn.log_q[query].tolist() == pytest.approx(
            expected[drawn.rows[query]].tolist(), rel=1e-6
        )
        assert float(drawn.positive_log_q[query]) == pytest.approx(
            float(expected[positives[query]]), rel=1e-6
        )
    assert drawn.num_draws == SIZE + 3
