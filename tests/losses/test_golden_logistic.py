"""The logistic losses and their gradients against golden values, in every dtype of a case."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from recsys.losses import (
    full_logistic_loss,
    negative_sampling_loss,
    noise_contrastive_loss,
    sampled_logistic_loss,
)


def make_leaves(inputs: dict[str, Any], dtype: str) -> dict[str, Tensor]:
    biases = inputs.get("biases", [0.0] * len(inputs["weights"]))
    values = {
        "grad_inputs": inputs["inputs"],
        "grad_weights": inputs["weights"],
        "grad_biases": biases,
    }
    kind = getattr(torch, dtype)
    return {
        name: torch.tensor(value, dtype=kind, requires_grad=True) for name, value in values.items()
    }


def check(case: Any, losses: Tensor, leaves: dict[str, Tensor], dtype: str) -> None:
    case.check("loss", losses.detach(), case.expected["loss"], dtype)
    torch.autograd.backward(losses.sum())
    compared = case.expected.keys() & leaves.keys()
    assert {"grad_inputs", "grad_weights"} <= compared
    for name in compared:
        case.check(name, leaves[name].grad, case.expected[name], dtype)


def sample_arguments(inputs: dict[str, Any], leaves: dict[str, Tensor]) -> dict[str, Any]:
    labels = torch.tensor(inputs["labels"])
    sampled = torch.tensor(inputs["sampled_candidates"])
    catalogue, biases = leaves["grad_weights"], leaves["grad_biases"]
    return {
        "query_embeddings": leaves["grad_inputs"],
        "positive_embeddings": catalogue[labels],
        "sampled_embeddings": catalogue[sampled],
        "positive_rows": labels,
        "sampled_rows": sampled,
        "temperature": 1.0,
        "positive_biases": biases[labels],
        "sampled_biases": biases[sampled],
        "positive_target": inputs["true_target"],
    }


def log_q_arguments(inputs: dict[str, Any], dtype: str) -> dict[str, Any]:
    kind = getattr(torch, dtype)
    return {
        "positive_log_q": torch.tensor(inputs["true_expected_count"], dtype=kind).log(),
        "sampled_log_q": torch.tensor(inputs["sampled_expected_count"], dtype=kind).log(),
    }


def repeat_for_each_query(arguments: dict[str, Any]) -> dict[str, Any]:
    """Give the shared sample as a sample for each query."""
    batch = len(arguments["query_embeddings"])
    names = [name for name in arguments if name.startswith("sampled_")]
    return {name: arguments[name].expand(batch, *arguments[name].shape) for name in names}


@pytest.mark.parametrize("own_samples", [False, True])
@pytest.mark.parametrize(
    ("prefix", "loss"),
    [("nce", noise_contrastive_loss), ("sampled_logistic", sampled_logistic_loss)],
)
def test_corrected_losses(
    golden_cases: Callable[[str], list[Any]],
    prefix: str,
    loss: Callable[..., Tensor],
    own_samples: bool,
) -> None:
    for case in golden_cases(prefix):
        assert case.inputs["remove_accidental_hits"] == (prefix == "sampled_logistic")
        for dtype in case.dtypes:
            leaves = make_leaves(case.inputs, dtype)
            arguments = sample_arguments(case.inputs, leaves) | log_q_arguments(case.inputs, dtype)
            if own_samples:
                arguments |= repeat_for_each_query(arguments)
            check(case, loss(**arguments), leaves, dtype)


@pytest.mark.parametrize("own_samples", [False, True])
def test_negative_sampling(golden_cases: Callable[[str], list[Any]], own_samples: bool) -> None:
    for case in golden_cases("negative_sampling"):
        for dtype in case.dtypes:
            leaves = make_leaves(case.inputs, dtype)
            arguments = sample_arguments(case.inputs, leaves)
            if own_samples:
                arguments |= repeat_for_each_query(arguments)
            check(case, negative_sampling_loss(**arguments), leaves, dtype)


def test_full_logistic(golden_cases: Callable[[str], list[Any]]) -> None:
    for case in golden_cases("full_logistic"):
        target = torch.tensor(case.inputs["target_probabilities"])
        assert ((target == 0) | (target == 1)).all()
        weights, rows = target.sort(dim=1, descending=True, stable=True)
        width = int((weights > 0).sum(dim=1).max())
        for dtype in case.dtypes:
            leaves = make_leaves(case.inputs, dtype)
            losses = full_logistic_loss(
                leaves["grad_inputs"],
                leaves["grad_weights"],
                positive_rows=rows[:, :width],
                positive_weights=weights[:, :width].to(getattr(torch, dtype)),
                temperature=1.0,
                catalogue_biases=leaves["grad_biases"],
                row_block_size=2,
                catalogue_block_size=3,
            )
            check(case, losses, leaves, dtype)
