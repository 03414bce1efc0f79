"""The references on average: the full softmax's gradient, or the closed form of the chain's."""

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError, FormatError, TrainingError
from recsys.losses import transition_matrix
from recsys.sampling import PopularityProposal
from recsys.training import ExactImportance, MetropolisHastings, MonteCarlo, ReferenceObjective

COUNTS = torch.tensor([4.0, 1, 2, 3, 6])
CHANCES = COUNTS / COUNTS.sum()
SCORES = torch.tensor([[0.5, -1.0, 0.0, 1.5, -0.5], [-1.0, 2.0, -2.0, 0.0, 1.0]])


class Told(PopularityProposal):
    """A proposal that draws what it is told, so that all draws can be enumerated."""

    def __init__(self) -> None:
        super().__init__(COUNTS, alpha=1.0)
        self.rows: tuple[int, ...] = ()

    def draw(self, num_draws: int, generator: torch.Generator) -> Tensor:
        assert num_draws == len(self.rows)
        return torch.tensor(self.rows)


def test_exact_importance_gives_the_full_softmax_on_average_over_all_draws(unit_items: Any) -> None:
    proposal = Told()
    objective = ReferenceObjective(ExactImportance(proposal, num_sampled=2), unit_items.features)
    batch = unit_items.batch([3, 2])
    mean = torch.zeros(2, 5)
    for rows in itertools.product(range(5), repeat=2):
        proposal.rows = rows
        chance = float(CHANCES[list(rows)].prod())
        mean += chance * unit_items.pull(objective, SCORES, batch)
    assert_close(mean, unit_items.full_pull(SCORES, [3, 2]), rtol=0, atol=1e-6)


def test_monte_carlo_gives_the_full_softmax_on_average(unit_items: Any) -> None:
    # 8,000 equal queries with 4 draws each: a weight's mean has a standard error of at most
    # 0.5 / sqrt(32,000) = 0.0028, of which 4 are allowed.
    objective = ReferenceObjective(MonteCarlo(num_sampled=4), unit_items.features)
    scores, positives = SCORES[:1].expand(8000, 5), [3] * 8000
    pull = unit_items.pull(objective, scores, unit_items.batch(positives))
    assert_close(
        pull.mean(dim=0), unit_items.full_pull(SCORES[:1], [3])[0], rtol=0, atol=4 * 0.0028
    )
    pull[:, 3] += 1
    assert torch.equal((pull * 4).round().unique(), torch.arange(5.0))  # shares of 4 draws
    assert_close(pull.sum(dim=1), torch.ones(8000))


def test_draws_from_the_model_are_each_querys_own(unit_items: Any) -> None:
    # At these scores each query has one item that takes nearly all of its softmax.
    objective = ReferenceObjective(MonteCarlo(num_sampled=9), unit_items.features)
    scores = 40 * torch.eye(5)[[2, 0, 4]]
    pull = unit_items.pull(objective, scores, unit_items.batch([1, 1, 1]))
    expected = torch.eye(5)[[2, 0, 4]]
    expected[:, 1] -= 1
    assert_close(pull, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("burn_in", [0, 1])
def test_the_chains_mean_gradient_is_that_of_the_transition_matrix(
    unit_items: Any, burn_in: int
) -> None:
    # All 125 sequences of an initial state and two proposals, each with 400 chains of their own
    # coins. The state begins as Q and after t steps is distributed as Q M^t, exactly.
    proposal = Told()
    chain = MetropolisHastings(proposal, num_sampled=2, burn_in=burn_in)
    objective = ReferenceObjective(chain, unit_items.features)
    scores, positives = SCORES[1:].expand(400, 5), [2] * 400
    batch, mean = unit_items.batch(positives), torch.zeros(5)
    for number, rows in enumerate(itertools.product(range(5), repeat=3)):
        proposal.rows = rows
        pull = unit_items.pull(objective, scores, batch, seed=number)
        mean += float(CHANCES[list(rows)].prod()) * pull.mean(dim=0)
    matrix = transition_matrix(SCORES[1].double(), CHANCES.double().log())
    states = [CHANCES.double() @ torch.linalg.matrix_power(matrix, t) for t in (1, 2)]
    expected = torch.stack(states[burn_in:]).mean(dim=0).float()
    bias = float((expected - SCORES[1].softmax(dim=0)).abs().max())
    expected[2] -= 1
    # Of one sequence a weight's standard error is at most 0.5 / sqrt(400); weighted by the
    # sequences' chances, sqrt(sum of chance^2) = (sum of Q^2)^1.5 of it is left: 0.0033.
    error = 0.025 * float(CHANCES.square().sum()) ** 1.5
    assert_close(mean, expected, rtol=0, atol=4 * error)
    assert bias > 4 * 4 * error  # so few steps do not reach the softmax, and it is seen


def test_a_long_chain_comes_to_the_full_softmax(unit_items: Any) -> None:
    # max P / Q is 0.66 / (1 / 16) = 10, so 2,000 states are worth about 2,000 / 20 = 100 draws
    # or more, of a standard error of 0.05; three of it are allowed.
    proposal = PopularityProposal(COUNTS, alpha=1.0)
    chain = MetropolisHastings(proposal, num_sampled=2100, burn_in=100)
    objective = ReferenceObjective(chain, unit_items.features)
    pull = unit_items.pull(objective, SCORES, unit_items.batch([3, 2]))
    assert_close(pull, unit_items.full_pull(SCORES, [3, 2]), rtol=0, atol=0.15)


def test_statistics_are_of_the_draws(unit_items: Any) -> None:
    # Equal weights P / Q: every proposal is taken. Else, of the two states that begin at item 0,
    # the chance to take item 1 is min(1, w(1) / w(0)).
    proposal = Told()
    proposal.rows = (0, 1)
    chain = MetropolisHastings(proposal, num_sampled=1, burn_in=0)
    objective = ReferenceObjective(chain, unit_items.features)
    equal = CHANCES.log().expand(4000, 5)
    unit_items.losses(objective, equal, unit_items.batch([2] * 4000))
    assert objective.statistics() == {"sample_size": 1, "acceptance_rate": 1}
    objective.start_epoch()
    assert objective.statistics() == {}
    unequal = equal.clone()
    unequal[:, 0] += math.log(4)
    unit_items.losses(objective, unequal, unit_items.batch([2] * 4000))
    assert objective.statistics()["acceptance_rate"] == pytest.approx(0.25, abs=0.03)

    exact = ReferenceObjective(MonteCarlo(num_sampled=7), unit_items.features)
    unit_items.losses(exact, SCORES, unit_items.batch([3, 2]))
    assert exact.statistics() == {"sample_size": 7}
    exact.load_state_dict(exact.state_dict())
    assert exact.statistics() == {"sample_size": 7}
    with pytest.raises(FormatError, match="statistics sample_size, acceptance_rate, got sample_"):
        objective.load_state_dict(exact.state_dict())
    with pytest.raises(FormatError, match=r"the state of statistics only, got sampler\.x"):
        exact.load_state_dict({"sampler.x": torch.zeros(2)})


@pytest.mark.parametrize(
    "weigh",
    [
        MonteCarlo(num_sampled=9),
        MetropolisHastings(PopularityProposal(COUNTS, alpha=1.0), num_sampled=120, burn_in=80),
    ],
)
def test_items_are_weighed_by_the_vectors_that_are_scored(unit_items: Any, weigh: Any) -> None:
    # Dropout turns about half of the items into the unknown one, anew at each look, which scores
    # 5 * 100 / 0.5 = 1000 here, and known items 2. So what is drawn is an item that is unknown at
    # this look, and scores 1000, less the positive's 1000 or 2; or no item was unknown.
    unit_items.model.item_tower.rows.dropout = 0.5
    unit_items.model.train()
    with torch.no_grad():
        unit_items.table[-1] = 100.0
    objective, losses = ReferenceObjective(weigh, unit_items.features), []
    torch.manual_seed(0)
    for seed in range(20):
        losses += unit_items.losses(
            objective, torch.full((1, 5), 2.0), unit_items.batch([0]), seed=seed
        ).tolist()
    assert {round(loss) for loss in losses} == {0, 998}


def test_scores_that_are_not_finite_are_named(unit_items: Any) -> None:
    objective = ReferenceObjective(MonteCarlo(num_sampled=4), unit_items.features)
    scores = SCORES.clone()
    scores[1, 2] = float("inf")
    with pytest.raises(TrainingError, match=r"scores are not finite, .*optimizer\.learning_rate"):
        unit_items.losses(objective, scores, unit_items.batch([3, 2]))


def test_a_chain_in_which_no_state_counts_is_refused() -> None:
    with pytest.raises(ArgumentError, match="`num_sampled - burn_in` must be above 0, got 0"):
        MetropolisHastings(Told(), num_sampled=3, burn_in=3)
