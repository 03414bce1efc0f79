"""An independence chain over candidates: Metropolis-Hastings whose proposals ignore the state.

Dimensions: B queries (one chain each), L steps, C candidates in the catalogue.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from recsys.foundations import ArgumentError, ShapeError, check_floats, check_shape
from recsys.losses.softmax_core import widen


@dataclass(frozen=True)
class ChainResult:
    """What chains did.

    Attributes:
        places: [B, L], int64; the column of ``log_weights`` that is the state after each step: 0 is
            the initial state, t the t-th proposal. A state that stays counts again.
        accepted: [B, L], bool; whether the step took its proposal.
        acceptance_probability: [B, L]; the chance that it had to.
    """

    places: Tensor
    accepted: Tensor
    acceptance_probability: Tensor


def independent_chain(log_weights: Tensor, uniforms: Tensor) -> ChainResult:
    """Run one chain a row whose states come to be distributed as the softmax.

    Step t proposes a draw y from Q whatever the state x is, and takes it if
    ``uniform < min(1, w(y) / w(x))``, ``w = exp(score / temperature) / Q``; otherwise x stays.
    The steps run one after another (all rows at once), and in the long run the distance between the
    state's distribution and the softmax falls by the factor ``1 - 1 / max(P / Q)`` a step (the
    second eigenvalue of `transition_matrix`): a peaked model needs a burn-in of a few times
    max(P / Q) steps. That is why the chain is a reference, and training has better estimators.

    Args:
        log_weights: [B, 1 + L] or [1 + L], float; log of w: of the initial state in column 0, of
            the t-th proposal in column t. A constant added to a row changes nothing.
        uniforms: [B, L] or [L], float in [0, 1).

    Returns:
        [B, L] each, or [L] for one chain. No gradient flows through it.

    Raises:
        ShapeError: The two disagree in B or L, or there is no initial state.
        ArgumentError: `log_weights` does not hold floating-point numbers.

    Source:
        "Monte Carlo sampling methods using Markov chains and their applications", Biometrika 1970;
        for softmax gradients "Quick training of probabilistic neural nets by importance sampling",
        AISTATS 2003; its rate in "Metropolized independent sampling with comparisons to rejection
        sampling and importance sampling", Statistics and Computing 1996.
    """
    check_floats("log_weights", log_weights)
    if log_weights.dim() == 0 or log_weights.shape[-1] == 0:
        raise ShapeError(
            "`log_weights` must hold an initial state in column 0, got shape "
            f"{list(log_weights.shape)}."
        )
    if log_weights.dim() == 1:
        check_shape("uniforms", uniforms, len(log_weights) - 1)
        chain = independent_chain(log_weights[None], uniforms[None])
        return ChainResult(chain.places[0], chain.accepted[0], chain.acceptance_probability[0])
    check_shape("log_weights", log_weights, None, None)
    check_shape("uniforms", uniforms, len(log_weights), log_weights.shape[1] - 1)
    weights = widen(log_weights.detach()).T.contiguous()  # [1 + L, B]: a step reads one row
    state, accepted, chances = weights[0], [], []
    for proposal, uniform in zip(weights[1:], uniforms.T, strict=True):
        chance = _acceptance(state, proposal)  # [B]
        taken = uniform < chance
        state = torch.where(taken, proposal, state)
        accepted.append(taken)
        chances.append(chance)
    if not accepted:
        nothing = weights.new_zeros(uniforms.shape)
        return ChainResult(nothing.long(), nothing.bool(), nothing)
    taken = torch.stack(accepted, dim=1)  # [B, L]
    steps = torch.arange(1, taken.shape[1] + 1, device=taken.device)
    # The state is the last proposal that was taken.
    places = (steps * taken).cummax(dim=1).values
    return ChainResult(places, taken, torch.stack(chances, dim=1))


def transition_matrix(scores: Tensor, log_proposal: Tensor) -> Tensor:
    """Compute the chance of every step of `independent_chain`, for a small catalogue.

    From x to another y it is ``Q(y) min(1, w(y) / w(x))``. The softmax of the scores is stationary:
    ``softmax @ matrix == softmax``.

    Args:
        scores: [C], float; already divided by the temperature.
        log_proposal: [C], float; log of the chance of each candidate in one draw; they sum to 1.

    Returns:
        [C, C]; row x holds the chances of the state after x. Memory O(C^2).

    Raises:
        ShapeError: The two disagree in C.
        ArgumentError: The chances do not sum to 1 (expected counts do not), or one is 0: what is
            never proposed is never reached.
    """
    check_shape("scores", scores, None)
    check_shape("log_proposal", log_proposal, len(scores))
    total = log_proposal.logsumexp(dim=0).exp().item()
    if not abs(total - 1) < 1e-4:
        raise ArgumentError(f"`log_proposal` must hold chances that sum to 1, got {total}.")
    if (log_proposal == float("-inf")).any():
        raise ArgumentError("`log_proposal` must hold chances above 0, got 0.")
    weights = scores - log_proposal  # [C]
    chances = _acceptance(weights[:, None], weights[None, :])  # [C, C]
    proposal = log_proposal.exp()
    matrix = proposal * chances
    staying = (proposal * (1 - chances)).sum(dim=1)  # the refused; of its own proposal none is
    return matrix + staying.diag()


def _acceptance(state: Tensor, proposal: Tensor) -> Tensor:
    """Compute ``min(1, exp(proposal - state))``; a state of weight 0 is left at once."""
    difference = torch.where(state == float("-inf"), 0, proposal - state)
    return difference.clamp(max=0).exp()
