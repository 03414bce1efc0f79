"""The refined correction against golden values, in every dtype of a case."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from recsys.losses import full_softmax_loss, refined_softmax_loss, refined_softmax_terms


def make_leaves(inputs: dict[str, Any], dtype: str) -> dict[str, Tensor]:
    values = {
        "grad_query": inputs["query"],
        "grad_item": inputs["items"],
        "grad_bias": inputs.get("biases", [0.0] * len(inputs["items"])),
    }
    kind = getattr(torch, dtype)
    return {
        name: torch.tensor(value, dtype=kind, requires_grad=True) for name, value in values.items()
    }


def make_arguments(
    inputs: dict[str, Any], leaves: dict[str, Tensor], dtype: str, num_draws: float
) -> dict[str, Any]:
    """Give Q as expected counts among `num_draws`; in a batch, the negatives are its items."""
    if "negatives" in inputs:
        positives, negatives = torch.tensor(inputs["positives"]), torch.tensor(inputs["negatives"])
        own = None
    else:
        positives = negatives = torch.tensor(inputs["batch_item_ids"])
        own = torch.arange(len(positives))
    probability = torch.tensor(inputs["item_probability"], dtype=getattr(torch, dtype))
    log_q = (probability * num_draws).log()
    items, biases = leaves["grad_item"], leaves["grad_bias"]
    return {
        "query_embeddings": leaves["grad_query"],
        "positive_embeddings": items[positives],
        "sampled_embeddings": items[negatives],
        "positive_rows": positives,
        "sampled_rows": negatives,
        "positive_log_q": log_q[positives],
        "sampled_log_q": log_q[negatives],
        "num_draws": num_draws,
        "temperature": inputs.get("temperature", 1.0),
        "positive_biases": biases[positives],
        "sampled_biases": biases[negatives],
        "own_columns": own,
    }


def full_softmax_gradients(case: Any, dtype: str) -> dict[str, Tensor]:
    leaves = make_leaves(case.inputs, dtype)
    losses = full_softmax_loss(
        leaves["grad_query"],
        leaves["grad_item"],
        positive_rows=torch.tensor(case.inputs["positives"]),
        temperature=1.0,
        catalogue_biases=leaves["grad_bias"],
    )
    case.check("full softmax", losses.detach(), case.expected["full_softmax_loss"], dtype)
    names = list(leaves)
    gradients = torch.autograd.grad(losses.sum(), [leaves[name] for name in names])
    return dict(zip(names, gradients, strict=True))


@pytest.mark.parametrize("num_draws", [1.0, 37.5])
def test_refined_softmax(golden_cases: Callable[[str], list[Any]], num_draws: float) -> None:
    for case in golden_cases("corrected_logq"):
        for dtype in case.dtypes:
            leaves = make_leaves(case.inputs, dtype)
            arguments = make_arguments(case.inputs, leaves, dtype, num_draws)
            terms = refined_softmax_terms(**arguments)
            for name, actual in (
                ("loss", terms.loss.detach()),
                ("weight", terms.weight),
                ("p_pos", terms.positive_probability),
                ("num_valid_negatives", terms.num_negatives),
            ):
                case.check(name, actual, case.expected[name], dtype)
            losses = refined_softmax_loss(**arguments)
            case.check("weighted_loss", losses.detach(), case.expected["weighted_loss"], dtype)
            case.check("loss_sum", losses.sum().detach(), case.expected["loss_sum"], dtype)
            torch.autograd.backward(losses.sum())
            compared = case.expected.keys() & leaves.keys()
            assert {"grad_query", "grad_item"} <= compared
            for name in compared:
                case.check(name, leaves[name].grad, case.expected[name], dtype)


def test_equals_the_full_softmax_where_the_case_says_so(
    golden_cases: Callable[[str], list[Any]],
) -> None:
    cases = [
        case for case in golden_cases("corrected_logq") if "full_softmax_loss" in case.expected
    ]
    for case in cases:
        for name, gradient in full_softmax_gradients(case, "float64").items():
            case.check(name, gradient, case.expected[name], "float64")
    assert cases
