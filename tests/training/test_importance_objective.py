"""Importance sampling as an objective: against slow self-normalised sums over its own draws."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import FormatError
from recsys.losses.products import PlainProducts
from recsys.sampling import (
    BigramProposal,
    BigramSampler,
    DrawRequest,
    LearnedUnigramProposal,
    PerQuerySampler,
    PopularityProposal,
    Sample,
    Sampler,
    UniformProposal,
    WithReplacementSampler,
)
from recsys.training import (
    ImportanceObjective,
    SampleGrowth,
    grow_each,
    grow_shared,
)

COUNTS = torch.tensor([4.0, 1, 2, 3, 6])
POSITIVES = [0, 1, 3, 4]  # all different, so that they tell the rows apart
SCORES = torch.tensor(
    [
        [0.5, -1.0, 0.0, 1.5, -0.5],
        [-3.0, 4.0, -2.0, 0.0, 1.0],
        [0.0, 0.0, 0.0, 0.0, 0.0],
        [2.0, -2.0, 1.0, -1.0, 0.5],
    ]
)


class Recording:
    """A sampler that notes which rows each of its blocks was for, and what it learned."""

    def __init__(self, inner: Sampler) -> None:
        self._inner = inner
        self.blocks: list[tuple[list[int], Tensor]] = []  # positives of the rows, [N] or [b, N]
        self.learned: list[list[int]] = []

    def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:
        assert not self.learned
        sample = self._inner.sample(request, generator)
        self.blocks.append((request.positive_rows.tolist(), sample.rows))
        return sample

    def update(self, positive_rows: Tensor, positive_embeddings: Tensor) -> None:
        self.learned.append(positive_rows.tolist())
        self._inner.update(positive_rows, positive_embeddings)

    def state_dict(self) -> dict[str, Tensor]:
        return self._inner.state_dict()

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self._inner.load_state_dict(state)

    def drawn_for(self, positive: int) -> list[int]:
        """Give all draws of the row with this positive."""
        drawn: list[int] = []
        for positives, rows in self.blocks:
            if positive in positives:
                shared = rows.dim() == 1
                own = rows if shared else rows[positives.index(positive)]
                drawn += own.tolist()
        return drawn


def popularity() -> PopularityProposal:
    return PopularityProposal(COUNTS, alpha=1.0)


def make(
    unit_items: Any,
    *,
    each: bool = False,
    num_sampled: int = 6,
    min_ess: float = 0,
    max_samples: int = 600,
    quantile: float = 0.0,
) -> tuple[ImportanceObjective, Recording]:
    """Make an objective over a popularity proposal, each query its own draws or shared ones."""
    inner: Sampler = WithReplacementSampler(popularity(), num_sampled=num_sampled)
    if each:
        inner = PerQuerySampler(popularity(), num_sampled=num_sampled)
    sampler = Recording(inner)
    growth = SampleGrowth(min_ess=min_ess, max_samples=max_samples, ess_quantile=quantile)
    grow = grow_each if each else grow_shared
    return ImportanceObjective(sampler, unit_items.features, growth, grow), sampler


def slow_weights(row: int, drawn: list[int]) -> list[float]:
    """Give exp(score) / Q of each draw, one by one."""
    chances = (COUNTS / COUNTS.sum()).tolist()
    return [math.exp(float(SCORES[row, item])) / chances[item] for item in drawn]


def slow_pull(row: int, drawn: list[int]) -> list[float]:
    """Give the self-normalised weight of each item over all draws, less 1 at the positive."""
    weights = slow_weights(row, drawn)
    pull = [0.0] * 5
    for item, weight in zip(drawn, weights, strict=True):
        pull[item] += weight / sum(weights)
    pull[POSITIVES[row]] -= 1
    return pull


def slow_ess(row: int, drawn: list[int]) -> float:
    weights = slow_weights(row, drawn)
    return float(sum(weights) ** 2 / sum(weight**2 for weight in weights))


KINDS = pytest.mark.parametrize(
    ("each", "min_ess"), [(False, 0.0), (True, 0.0), (False, 9.0), (True, 9.0)]
)


@KINDS
def test_the_gradient_is_the_self_normalised_sum_over_all_draws(
    unit_items: Any, each: bool, min_ess: float
) -> None:
    objective, sampler = make(unit_items, each=each, min_ess=min_ess)
    pull = unit_items.pull(objective, SCORES, unit_items.batch(POSITIVES))
    for row, positive in enumerate(POSITIVES):
        drawn = sampler.drawn_for(positive)
        assert_close(pull[row], torch.tensor(slow_pull(row, drawn)), rtol=0, atol=1e-5)
    assert (len(sampler.blocks) > 1) == (min_ess > 0)


@KINDS
def test_the_loss_is_the_log_of_the_estimated_denominator_less_the_positives_score(
    unit_items: Any, each: bool, min_ess: float
) -> None:
    objective, sampler = make(unit_items, each=each, min_ess=min_ess)
    losses = unit_items.losses(objective, SCORES, unit_items.batch(POSITIVES))
    for row, positive in enumerate(POSITIVES):
        weights = slow_weights(row, sampler.drawn_for(positive))
        mean = sum(weights) / len(weights)  # an estimate of Z
        assert float(losses[row]) == pytest.approx(
            math.log(mean) - float(SCORES[row, positive]), abs=1e-5
        )


@KINDS
def test_the_statistics_are_means_over_the_rows_of_all_steps(
    unit_items: Any, each: bool, min_ess: float
) -> None:
    objective, sampler = make(unit_items, each=each, min_ess=min_ess, max_samples=18)
    assert objective.statistics() == {}
    sizes, worths, shorts = [], [], []
    for seed in range(3):
        unit_items.losses(objective, SCORES, unit_items.batch(POSITIVES), seed=seed)
        drawn = [sampler.drawn_for(positive) for positive in POSITIVES]
        sizes += [len(of_row) for of_row in drawn]
        worths += [slow_ess(row, of_row) for row, of_row in enumerate(drawn)]
        shorts += [slow_ess(row, of_row) < min_ess for row, of_row in enumerate(drawn)]
        sampler.blocks.clear()
        sampler.learned.clear()
    found = objective.statistics()
    assert found["sample_size"] == sum(sizes) / 12
    assert found["effective_sample_size"] == pytest.approx(sum(worths) / 12, rel=1e-5)
    assert found["full_softmax_share"] == sum(shorts) / 12
    assert any(shorts) == (min_ess > 0)
    objective.start_epoch()
    assert objective.statistics() == {}


@pytest.mark.parametrize("each", [False, True])
def test_rows_past_the_cap_take_exactly_the_full_softmax(unit_items: Any, each: bool) -> None:
    objective, sampler = make(unit_items, each=each, min_ess=7, max_samples=15)
    pull = unit_items.pull(objective, SCORES, unit_items.batch(POSITIVES))
    full = unit_items.full_pull(SCORES, POSITIVES)
    short = [slow_ess(row, sampler.drawn_for(p)) < 7 for row, p in enumerate(POSITIVES)]
    assert 0 < sum(short) < 4
    for row, positive in enumerate(POSITIVES):
        drawn = sampler.drawn_for(positive)
        assert len(drawn) <= 12  # two blocks of six; a third would make 18
        expected = full[row] if short[row] else torch.tensor(slow_pull(row, drawn))
        assert_close(pull[row], expected, rtol=0, atol=1e-6)


def test_the_loss_past_the_cap_is_the_full_softmaxs(unit_items: Any) -> None:
    objective, _ = make(unit_items, min_ess=500, max_samples=10)
    losses = unit_items.losses(objective, SCORES, unit_items.batch(POSITIVES))
    assert_close(losses, -SCORES.log_softmax(dim=1)[range(4), POSITIVES])


@pytest.mark.parametrize("each", [False, True])
def test_weighted_rows_past_the_cap_are_scored_against_the_catalogue_once(
    unit_items: Any, each: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    objective, sampler = make(unit_items, each=each, min_ess=7, max_samples=15)
    weights = np.array([0.25, 1.0, 3.0, 0.5], np.float32)
    batch = replace(unit_items.batch(POSITIVES), weights=weights)
    queries = unit_items.queries(SCORES)
    calls, logits = [], PlainProducts.logits

    def count(self: PlainProducts, rows: slice, columns: slice) -> tuple[Tensor, Tensor | None]:
        calls.append(rows)
        return logits(self, rows, columns)

    monkeypatch.setattr(PlainProducts, "logits", count)
    generator = torch.Generator().manual_seed(0)
    losses = objective.losses(unit_items.model, queries, batch, generator)
    short = [slow_ess(row, sampler.drawn_for(p)) < 7 for row, p in enumerate(POSITIVES)]
    assert 0 < sum(short) < 4
    total = (losses * torch.from_numpy(weights)).sum() / float(weights.sum())
    torch.autograd.grad(total, [queries, unit_items.table])
    assert len(calls) == 1


def test_without_a_quantile_the_worst_row_holds_up_all(unit_items: Any) -> None:
    # The scores of all rows but the second are the log of the counts: equal weights, 12 draws are
    # worth 12. The second has nearly all weight on the item with 6 of the 16 counts.
    scores = COUNTS.log().repeat(4, 1)
    scores[1, 4] = 9.0
    every, sampler = make(unit_items, min_ess=7, num_sampled=12)
    unit_items.losses(every, scores, unit_items.batch(POSITIVES))
    assert len(sampler.blocks) > 1
    assert every.statistics()["full_softmax_share"] == 0


def test_rows_that_a_quantile_lets_go_keep_the_estimate_of_their_own_draws(unit_items: Any) -> None:
    # As above: equal weights in all rows but the second, which is worth less than 7 draws.
    scores = COUNTS.log().repeat(4, 1)
    scores[1, 4] = 9.0
    sampler = Recording(WithReplacementSampler(popularity(), num_sampled=12))
    growth = SampleGrowth(min_ess=7, max_samples=600, ess_quantile=0.4)
    objective = ImportanceObjective(sampler, unit_items.features, growth, grow_shared)
    pull = unit_items.pull(objective, scores, unit_items.batch(POSITIVES))
    assert len(sampler.blocks) == 1
    assert objective.statistics()["full_softmax_share"] == 0
    weights = [
        math.exp(float(scores[1, item])) / float(COUNTS[item] / COUNTS.sum())
        for item in sampler.drawn_for(1)
    ]
    expected = [-float(item == 1) for item in range(5)]
    for item, weight in zip(sampler.drawn_for(1), weights, strict=True):
        expected[item] += weight / sum(weights)
    assert_close(pull[1], torch.tensor(expected), rtol=0, atol=1e-5)


def test_rows_short_at_the_cap_take_the_full_softmax_there_too(unit_items: Any) -> None:
    scores = COUNTS.log().repeat(4, 1)
    scores[1:, 4] = 9.0  # three of the four rows: the quantile cannot let them go
    sampler = Recording(WithReplacementSampler(popularity(), num_sampled=12))
    growth = SampleGrowth(min_ess=11, max_samples=12, ess_quantile=0.4)
    objective = ImportanceObjective(sampler, unit_items.features, growth, grow_shared)
    pull = unit_items.pull(objective, scores, unit_items.batch(POSITIVES))
    assert objective.statistics()["full_softmax_share"] == 0.75
    assert_close(pull[1:], unit_items.full_pull(scores, POSITIVES)[1:], rtol=0, atol=1e-6)


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("num_sampled", [1, 3, 8])
@pytest.mark.parametrize("min_ess", [0.0, 1.0, 6.5, 40.0])
def test_what_counts_never_passes_the_cap(
    unit_items: Any, each: bool, num_sampled: int, min_ess: float
) -> None:
    for max_samples in (1, 2, 3, 7, 8, 9, 25):
        objective, sampler = make(
            unit_items, each=each, num_sampled=num_sampled, min_ess=min_ess, max_samples=max_samples
        )
        losses = unit_items.losses(objective, SCORES, unit_items.batch(POSITIVES))
        if num_sampled <= max_samples:
            assert all(len(sampler.drawn_for(positive)) <= max_samples for positive in POSITIVES)
        else:  # no block fits: nothing that was drawn counts
            assert objective.statistics()["full_softmax_share"] == 1
            assert_close(losses, -SCORES.log_softmax(dim=1)[range(4), POSITIVES])


@pytest.mark.parametrize("each", [False, True])
def test_samples_grow_as_the_scores_sharpen(unit_items: Any, each: bool) -> None:
    sizes = []
    for sharpness in (0.0, 0.5, 1.0, 2.0):
        inner: Sampler = WithReplacementSampler(UniformProposal(5), num_sampled=8)
        if each:
            inner = PerQuerySampler(UniformProposal(5), num_sampled=8)
        growth = SampleGrowth(min_ess=32, max_samples=10_000, ess_quantile=0.0)
        grow = grow_each if each else grow_shared
        objective = ImportanceObjective(inner, unit_items.features, growth, grow)
        unit_items.losses(objective, sharpness * SCORES, unit_items.batch(POSITIVES))
        sizes.append(objective.statistics()["sample_size"])
    assert sizes[0] == 32  # equal weights
    # Uniform draws are worth (sum of exp s)^2 / (C * sum of exp 2s) each: 1/4.6 of the second row.
    assert sizes == sorted(set(sizes))
    peaked = (2 * SCORES).double().exp()
    shares = peaked.sum(dim=1) ** 2 / (5 * peaked.square().sum(dim=1))
    needed = float((32 / shares).mean() if each else (32 / shares).max())
    assert 0.7 * needed < sizes[-1] < 1.6 * needed


def test_draws_by_what_followed_the_last_item_are_weighed_by_their_own_chance(
    unit_items: Any,
) -> None:
    pairs = torch.tensor([[0, 0, 2], [1, 1, 4]])
    proposal = BigramProposal(COUNTS, *pairs, unigram_share=0.5)
    sampler = Recording(BigramSampler(proposal, num_sampled=7))
    growth = SampleGrowth(min_ess=0, max_samples=7, ess_quantile=0.0)
    objective = ImportanceObjective(sampler, unit_items.features, growth, grow_each)
    last = [0, 2, -1, 3]
    pull = unit_items.pull(objective, SCORES, unit_items.batch(POSITIVES, last=last))
    unigram = (COUNTS / COUNTS.sum()).tolist()
    follows = {0: [0.0, 1, 0, 0, 0], 2: [0.0, 0, 0, 0, 1]}  # the others begin no pair
    for row, positive in enumerate(POSITIVES):
        after = follows.get(last[row], unigram)
        chances = [0.5 * u + 0.5 * a for u, a in zip(unigram, after, strict=True)]
        drawn = sampler.drawn_for(positive)
        weights = [math.exp(float(SCORES[row, item])) / chances[item] for item in drawn]
        expected = torch.zeros(5, dtype=torch.float64)
        for item, weight in zip(drawn, weights, strict=True):
            expected[item] += weight / sum(weights)
        expected[positive] -= 1
        assert_close(pull[row], expected.float(), rtol=0, atol=1e-5)


def test_a_sampler_that_learns_does_so_once_a_step_after_its_draws(unit_items: Any) -> None:
    proposal = LearnedUnigramProposal(5)
    sampler = Recording(WithReplacementSampler(proposal, num_sampled=4))
    growth = SampleGrowth(min_ess=20, max_samples=400, ess_quantile=0.0)
    objective = ImportanceObjective(sampler, unit_items.features, growth, grow_shared)
    unit_items.losses(objective, SCORES, unit_items.batch([0, 0, 3, 4]))
    assert len(sampler.blocks) > 1
    assert sampler.learned == [[0, 0, 3, 4]]
    state = objective.state_dict()
    assert state["sampler.counts"].tolist() == [3, 1, 1, 2, 2]  # from 1 each

    again, _ = make(unit_items)
    with pytest.raises(FormatError, match=r"state must be empty for this sampler, got \['counts'"):
        again.load_state_dict(state)


def test_state_and_statistics_go_on_where_they_stopped(unit_items: Any) -> None:
    batch = unit_items.batch(POSITIVES)
    first, sampler = make(unit_items, min_ess=9)
    unit_items.losses(first, SCORES, batch, seed=0)
    second, _ = make(unit_items, min_ess=9)
    second.load_state_dict(first.state_dict())
    sampler.learned.clear()
    for objective in (first, second):
        unit_items.losses(objective, SCORES, batch, seed=1)
    assert first.statistics() == second.statistics()
    with pytest.raises(FormatError, match="the state of sampler, statistics only, got popularity"):
        second.load_state_dict(first.state_dict() | {"popularity.step": torch.tensor(1)})
    with pytest.raises(FormatError, match="must hold the statistics sample_size, effective_sam"):
        second.load_state_dict({"statistics.sample_size": torch.zeros(2)})


def test_float64_vectors_give_float64_losses(unit_items: Any) -> None:
    objective, sampler = make(unit_items, min_ess=9, max_samples=12)
    unit_items.model.double()
    queries = (SCORES.double() * 0.5).requires_grad_()
    losses = objective.losses(
        unit_items.model, queries, unit_items.batch(POSITIVES), torch.Generator().manual_seed(0)
    ).detach()
    assert losses.dtype == torch.float64
    for row, positive in enumerate(POSITIVES):
        drawn = sampler.drawn_for(positive)
        if slow_ess(row, drawn) >= 9:
            mean = sum(slow_weights(row, drawn)) / len(drawn)
            expected = math.log(mean) - float(SCORES[row, positive])
        else:
            expected = -float(SCORES.double().log_softmax(dim=1)[row, positive])
        assert float(losses[row]) == pytest.approx(expected, abs=1e-6)  # log Q is float32
