"""Importance sampling, growing samples and the independence chain against golden values."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from recsys.losses import (
    effective_sample_size,
    full_softmax_loss,
    grow_sample,
    importance_sampling_loss,
    importance_weights,
    independent_chain,
    monte_carlo_loss,
    transition_matrix,
)


def read_scores(inputs: dict[str, Any], kind: torch.dtype) -> tuple[Tensor, Tensor]:
    """Give a case's scores, as a leaf, and its log proposal: [C] each."""
    scores = torch.tensor(inputs["scores"], dtype=kind, requires_grad=True)
    return scores, torch.tensor(inputs["proposal"], dtype=kind).log()


def sampled_gradient(
    scores: Tensor, log_proposal: Tensor, draws: Tensor, positive: int, *, shared: bool
) -> Tensor:
    """Give the loss's gradient of the scores, which are the biases of embeddings of length 0."""
    shape = draws.shape if shared else (1, *draws.shape)
    losses = importance_sampling_loss(
        scores.new_zeros(1, 1),
        scores.new_zeros(1, 1),
        scores.new_zeros(*shape, 1),
        positive_rows=torch.tensor([positive]),
        sampled_rows=draws.reshape(shape),
        positive_log_q=log_proposal[[positive]],
        sampled_log_q=log_proposal[draws].reshape(shape),
        temperature=1.0,
        positive_biases=scores[[positive]],
        sampled_biases=scores[draws].reshape(shape),
    )
    return torch.autograd.grad(losses.sum(), [scores])[0]


def full_gradient(scores: Tensor, positive: int) -> Tensor:
    losses = full_softmax_loss(
        scores.new_zeros(1, 1),
        scores.new_zeros(len(scores), 1),
        positive_rows=torch.tensor([positive]),
        temperature=1.0,
        catalogue_biases=scores,
    )
    return torch.autograd.grad(losses.sum(), [scores])[0]


def check_one_query(case: Any, dtype: str) -> None:
    scores, log_proposal = read_scores(case.inputs, getattr(torch, dtype))
    draws, positive = torch.tensor(case.inputs["draws"]), case.inputs["positive"]
    log_weights = (scores - log_proposal)[draws].detach()
    case.check("weights", importance_weights(log_weights), case.expected["weights"], dtype)
    size = effective_sample_size(log_weights)
    case.check("size", size, case.expected["effective_sample_size"], dtype)
    for shared in (True, False):
        actual = sampled_gradient(scores, log_proposal, draws, positive, shared=shared)
        case.check("grad_scores", actual, case.expected["grad_scores"], dtype)


def check_batch(case: Any, dtype: str) -> None:
    kind = getattr(torch, dtype)
    leaves = {
        name: torch.tensor(case.inputs[name], dtype=kind, requires_grad=True)
        for name in ("query", "items", "biases")
    }
    log_proposal = torch.tensor(case.inputs["proposal"], dtype=kind).log()
    draws, positives = torch.tensor(case.inputs["draws"]), torch.tensor(case.inputs["positives"])
    scores = leaves["query"] @ leaves["items"].T + leaves["biases"]
    log_weights = (scores - log_proposal).detach().gather(1, draws)
    case.check("weights", importance_weights(log_weights), case.expected["weights"], dtype)
    sizes = effective_sample_size(log_weights)
    case.check("sizes", sizes, case.expected["effective_sample_size"], dtype)
    losses = importance_sampling_loss(
        leaves["query"],
        leaves["items"][positives],
        leaves["items"][draws],
        positive_rows=positives,
        sampled_rows=draws,
        positive_log_q=log_proposal[positives],
        sampled_log_q=log_proposal[draws],
        temperature=1.0,
        positive_biases=leaves["biases"][positives],
        sampled_biases=leaves["biases"][draws],
    )
    torch.autograd.backward(losses.sum())
    for name, leaf in leaves.items():
        case.check(name, leaf.grad, case.expected[f"grad_{name}"], dtype)


def test_importance_sampling(golden_cases: Callable[[str], list[Any]]) -> None:
    for case in golden_cases("snis_gradient"):
        check = check_batch if "query" in case.inputs else check_one_query
        for dtype in case.dtypes:
            check(case, dtype)


def test_growing_samples(golden_cases: Callable[[str], list[Any]]) -> None:
    for case in golden_cases("adaptive_snis"):
        for dtype in case.dtypes:
            scores, log_proposal = read_scores(case.inputs, getattr(torch, dtype))
            draws, positive = torch.tensor(case.inputs["draws"]), case.inputs["positive"]
            log_weights = (scores - log_proposal).detach()[draws]
            blocks: Iterator[Tensor] = iter(log_weights[None].split(case.inputs["block_size"], 1))
            grown = grow_sample(
                blocks, min_ess=case.inputs["min_ess"], max_samples=case.inputs["max_samples"]
            )
            case.check("ess_trace", grown.ess_trace[:, 0], case.expected["ess_trace"], dtype)
            assert bool(grown.reached) is not case.expected["used_full_softmax"]
            if grown.reached:
                assert grown.num_samples == case.expected["num_drawn"]
                used = draws[: grown.num_samples]
                actual = sampled_gradient(scores, log_proposal, used, positive, shared=True)
            else:
                actual = full_gradient(scores, positive)
            case.check("grad_scores", actual, case.expected["grad_scores"], dtype)


def test_independent_chain(golden_cases: Callable[[str], list[Any]]) -> None:
    for case in golden_cases("independent_metropolis_hastings"):
        for dtype in case.dtypes:
            scores, log_proposal = read_scores(case.inputs, getattr(torch, dtype))
            candidates = torch.tensor([case.inputs["initial_state"], *case.inputs["proposals"]])
            uniforms = torch.tensor(case.inputs["uniforms"], dtype=scores.dtype)
            chain = independent_chain((scores - log_proposal)[candidates], uniforms)
            states = candidates[chain.places]
            assert states.tolist() == case.expected["states"]
            assert chain.accepted.tolist() == case.expected["accepted"]
            chances = case.expected["acceptance_probability"]
            case.check("acceptance", chain.acceptance_probability, chances, dtype)
            if "acceptance_rate" in case.expected:
                rate = chain.accepted.double().mean()
                case.check("acceptance_rate", rate, case.expected["acceptance_rate"], dtype)
            if "grad_scores" in case.expected:
                actual = chain_gradient(scores, states, case.inputs["positive"])
                case.check("grad_scores", actual, case.expected["grad_scores"], dtype)
            if "transition_matrix" in case.expected:
                check_matrix(case, scores.detach(), log_proposal, dtype)


def chain_gradient(scores: Tensor, states: Tensor, positive: int) -> Tensor:
    losses = monte_carlo_loss(
        scores.new_zeros(1, 1),
        scores.new_zeros(1, 1),
        scores.new_zeros(len(states), 1),
        positive_rows=torch.tensor([positive]),
        sampled_rows=states,
        temperature=1.0,
        positive_biases=scores[[positive]],
        sampled_biases=scores[states],
    )
    return torch.autograd.grad(losses.sum(), [scores])[0]


def check_matrix(case: Any, scores: Tensor, log_proposal: Tensor, dtype: str) -> None:
    matrix = transition_matrix(scores, log_proposal)
    case.check("matrix", matrix, case.expected["transition_matrix"], dtype)
    stationary = torch.tensor(case.expected["stationary_distribution"], dtype=scores.dtype)
    case.check("stationary", stationary @ matrix, stationary, dtype)
    case.check("softmax", scores.softmax(dim=0), stationary, dtype)
