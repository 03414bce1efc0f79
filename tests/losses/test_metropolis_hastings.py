"""The independence chain step by step, on average over all chains, and how fast it forgets."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError, ShapeError
from recsys.losses import independent_chain, monte_carlo_loss, transition_matrix

SCORES = torch.tensor([1.0, 0.5, -0.2], dtype=torch.float64)
PROPOSAL = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
TARGET = SCORES.softmax(dim=0)


def run_slowly(log_weights: list[float], uniforms: list[float]) -> tuple[list[int], list[bool]]:
    """Run one chain, number by number."""
    state, places, accepted = 0, [], []
    for step, uniform in enumerate(uniforms, start=1):
        chance = math.exp(min(0.0, log_weights[step] - log_weights[state]))
        accepted.append(uniform < chance)
        state = step if uniform < chance else state
        places.append(state)
    return places, accepted


@given(seed=st.integers(0, 2**16), length=st.integers(0, 30))
def test_equals_a_chain_run_number_by_number(seed: int, length: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    log_weights = 2 * torch.randn(3, 1 + length, generator=generator, dtype=torch.float64)
    uniforms = torch.rand(3, length, generator=generator, dtype=torch.float64)
    chain = independent_chain(log_weights, uniforms)
    for row in range(3):
        places, accepted = run_slowly(log_weights[row].tolist(), uniforms[row].tolist())
        assert chain.places[row].tolist() == places
        assert chain.accepted[row].tolist() == accepted
        alone = independent_chain(log_weights[row], uniforms[row])
        assert torch.equal(alone.places, chain.places[row])
        assert torch.equal(alone.acceptance_probability, chain.acceptance_probability[row])


@pytest.fixture(scope="module")
def all_chains() -> tuple[Tensor, Tensor]:
    """Give the states of every chain of five steps from candidate 2, [N, 5], and their chances.

    Each step has three proposals, each taken or not: u = 0 takes whatever can be taken, and u = 1
    nothing, so both together stand for all uniforms.
    """
    proposals = torch.tensor(list(itertools.product(range(3), repeat=5)))
    uniforms = torch.tensor(list(itertools.product([0.0, 1.0], repeat=5)))
    candidates = proposals.repeat_interleave(len(uniforms), dim=0)  # [N, L]
    uniforms = uniforms.repeat(len(proposals), 1).double()
    candidates = torch.cat([torch.full((len(candidates), 1), 2), candidates], dim=1)
    chain = independent_chain((SCORES - PROPOSAL.log())[candidates], uniforms)
    taken = chain.acceptance_probability
    chances = PROPOSAL[candidates[:, 1:]] * torch.where(chain.accepted, taken, 1 - taken)
    return candidates.gather(1, chain.places), chances.prod(dim=1)


def chain_gradient(states: Tensor, chances: Tensor) -> Tensor:
    """Give the mean over chains of the gradient that their states [N, L] give: [3]."""
    leaf, count = SCORES.clone().requires_grad_(), len(states)
    losses = monte_carlo_loss(
        torch.ones(count, 1, dtype=torch.float64),
        leaf[1].expand(count, 1),
        leaf[states][..., None],
        temperature=1.0,
    )
    return torch.autograd.grad((losses * chances).sum(), [leaf])[0]


def test_all_chains_together_follow_the_transition_matrix(
    all_chains: tuple[Tensor, Tensor],
) -> None:
    states, chances = all_chains
    assert_close(chances.sum(), torch.tensor(1.0, dtype=torch.float64), rtol=0, atol=1e-12)
    matrix = transition_matrix(SCORES, PROPOSAL.log())
    expected = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
    for step in range(5):
        expected = expected @ matrix
        share = torch.stack([(chances * (states[:, step] == y)).sum() for y in range(3)])
        assert_close(share, expected, rtol=0, atol=1e-12)


FULL = TARGET - torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
SECOND = 1 - 1 / (TARGET / PROPOSAL).max().item()  # eigenvalue of the transition matrix


def test_the_bias_of_the_gradient_falls_by_the_second_eigenvalue_a_step_of_burn_in(
    all_chains: tuple[Tensor, Tensor],
) -> None:
    states, chances = all_chains
    eigenvalues = torch.linalg.eigvals(transition_matrix(SCORES, PROPOSAL.log())).real
    third, second, _ = eigenvalues.sort().values.tolist()
    assert second == pytest.approx(SECOND, rel=1e-9)
    assert third < 0.2 * second  # so that after two steps only the second is left
    biases = [
        (chain_gradient(states[:, [step]], chances) - FULL).norm().item() for step in range(5)
    ]
    for earlier, later in itertools.pairwise(biases[1:]):
        assert later / earlier == pytest.approx(second, rel=0.02)


def test_burn_in_takes_its_share_out_of_the_bias_of_a_chains_mean(
    all_chains: tuple[Tensor, Tensor],
) -> None:
    # The bias after t steps is about SECOND^t, and that of a mean over steps the mean of theirs.
    states, chances = all_chains
    with_all = (chain_gradient(states, chances) - FULL).norm().item()
    with_last = (chain_gradient(states[:, 3:], chances) - FULL).norm().item()
    of_all = sum(SECOND**t for t in range(1, 6)) / 5
    of_last = (SECOND**4 + SECOND**5) / 2
    assert with_last / with_all == pytest.approx(of_last / of_all, rel=0.05)


def test_the_error_of_a_long_chains_mean_falls_as_one_over_the_root_of_its_length() -> None:
    # 1500 chains: the measured errors are within about 2 % (1 / sqrt(2 * 1500)) of the true ones.
    generator, errors = torch.Generator().manual_seed(0), []
    for length in (32, 128, 512):
        size = 1500 * (1 + length)
        drawn = torch.multinomial(PROPOSAL, size, replacement=True, generator=generator)
        candidates = drawn.reshape(1500, 1 + length)
        uniforms = torch.rand(1500, length, generator=generator)
        chain = independent_chain((SCORES - PROPOSAL.log())[candidates], uniforms)
        states = candidates.gather(1, chain.places)
        shares = torch.stack([(states == y).double().mean(dim=1) for y in range(3)], dim=1)
        errors.append((shares - TARGET).square().sum(dim=1).mean().sqrt().item())
    for short, long in itertools.pairwise(errors):
        assert short / long == pytest.approx(2, rel=0.08)


@given(seed=st.integers(0, 2**16), scale=st.floats(0, 5))
def test_the_softmax_is_stationary_and_every_step_is_reversible(seed: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn(6, generator=generator, dtype=torch.float64)
    log_q = torch.randn(6, generator=generator, dtype=torch.float64).log_softmax(dim=0)
    matrix, target = transition_matrix(scores, log_q), scores.softmax(dim=0)
    assert_close(matrix.sum(dim=1), torch.ones(6, dtype=torch.float64), rtol=0, atol=1e-12)
    assert_close(target @ matrix, target, rtol=0, atol=1e-12)
    flow = target[:, None] * matrix
    assert_close(flow, flow.T, rtol=0, atol=1e-12)
    second = torch.linalg.eigvals(matrix).real.sort().values[-2].item()
    largest = (target.log() - log_q).max().exp().item()
    assert second == pytest.approx(1 - 1 / largest, abs=1e-6)


def test_takes_every_proposal_where_the_proposal_is_the_model() -> None:
    log_weights = (SCORES - SCORES.log_softmax(dim=0))[torch.tensor([2, 0, 1, 1, 0])]
    chain = independent_chain(log_weights, torch.tensor([0.99, 0.5, 0.0, 0.99]))
    assert chain.places.tolist() == [1, 2, 3, 4]


def test_a_state_of_weight_zero_is_left_at_once_and_never_entered() -> None:
    never = float("-inf")
    chain = independent_chain(torch.tensor([never, 0.0, never]), torch.tensor([0.999, 0.0]))
    assert chain.accepted.tolist() == [True, False]
    assert chain.places.tolist() == [1, 1]


def test_names_what_is_wrong() -> None:
    with pytest.raises(ShapeError, match=r"`uniforms` must have shape \[2, 4\], got \[2, 5\]"):
        independent_chain(torch.zeros(2, 5), torch.zeros(2, 5))
    with pytest.raises(ShapeError, match=r"`uniforms` must have shape \[4\], got \[5\]"):
        independent_chain(torch.zeros(5), torch.zeros(5))
    with pytest.raises(ShapeError, match=r"`log_proposal` must have shape \[3\], got \[2\]"):
        transition_matrix(torch.zeros(3), torch.zeros(2))
    counts = torch.full((4,), 2.0).log()
    with pytest.raises(ArgumentError, match=r"`log_proposal` must hold chances that sum to 1"):
        transition_matrix(torch.zeros(4), counts)
