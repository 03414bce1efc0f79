"""The losses and their gradients against golden values, in every dtype that a case names."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from recsys.losses import full_softmax_loss, in_batch_softmax_loss, sampled_softmax_loss


def make_leaf(values: Any, dtype: torch.dtype) -> Tensor:
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def make_biases(inputs: dict[str, Any], dtype: torch.dtype) -> Tensor:
    return make_leaf(inputs.get("biases", [0.0] * len(inputs["weights"])), dtype)


def check_gradients(case: Any, losses: Tensor, leaves: dict[str, Tensor], dtype: str) -> None:
    torch.autograd.backward(losses.sum())
    for name, leaf in leaves.items():
        if name in case.expected:
            assert leaf.grad is not None
            case.check(name, leaf.grad, case.expected[name], dtype)


def full_softmax_inputs(target: Tensor) -> tuple[Tensor, Tensor]:
    """Turn target probabilities [B, C] into rows and weights [B, T]; padding has weight 0."""
    weights, rows = target.sort(dim=1, descending=True, stable=True)
    width = int((weights > 0).sum(dim=1).max())
    return rows[:, :width], weights[:, :width]


def test_full_softmax(golden_cases: Callable[[str], list[Any]]) -> None:
    for case in golden_cases("full_softmax"):
        for dtype in case.dtypes:
            kind = getattr(torch, dtype)
            queries = make_leaf(case.inputs["inputs"], kind)
            catalogue = make_leaf(case.inputs["weights"], kind)
            biases = make_biases(case.inputs, kind)
            target = torch.tensor(case.inputs["target_probabilities"], dtype=kind)
            rows, weights = full_softmax_inputs(target)
            losses = full_softmax_loss(
                queries,
                catalogue,
                positive_rows=rows,
                positive_weights=weights,
                temperature=1.0,
                catalogue_biases=biases,
                row_block_size=2,
                catalogue_block_size=3,
            )
            case.check("loss", losses.detach(), case.expected["loss"], dtype)
            leaves = {"grad_inputs": queries, "grad_weights": catalogue, "grad_biases": biases}
            check_gradients(case, losses, leaves, dtype)


def test_sampled_softmax(golden_cases: Callable[[str], list[Any]]) -> None:
    for case in golden_cases("sampled_softmax"):
        for dtype in case.dtypes:
            kind = getattr(torch, dtype)
            queries = make_leaf(case.inputs["inputs"], kind)
            catalogue = make_leaf(case.inputs["weights"], kind)
            biases = make_biases(case.inputs, kind)
            labels = torch.tensor(case.inputs["labels"])
            sampled = torch.tensor(case.inputs["sampled_candidates"])
            losses = sampled_softmax_loss(
                queries,
                catalogue[labels],
                catalogue[sampled],
                positive_rows=labels,
                sampled_rows=sampled,
                positive_log_q=torch.tensor(case.inputs["true_expected_count"], dtype=kind).log(),
                sampled_log_q=torch.tensor(case.inputs["sampled_expected_count"], dtype=kind).log(),
                temperature=1.0,
                positive_biases=biases[labels],
                sampled_biases=biases[sampled],
                remove_accidental_hits=case.inputs["remove_accidental_hits"],
            )
            case.check("loss", losses.detach(), case.expected["loss"], dtype)
            leaves = {"grad_inputs": queries, "grad_weights": catalogue, "grad_biases": biases}
            check_gradients(case, losses, leaves, dtype)


def in_batch_arguments(inputs: dict[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    """Translate a case's inputs; what a case leaves out is off."""
    probability, mask = inputs.get("candidate_sampling_probability"), inputs.get("score_mask")
    rows = inputs["candidate_ids"] if inputs.get("remove_accidental_hits") else None
    return {
        "candidate_rows": None if rows is None else torch.tensor(rows),
        "candidate_log_q": (
            None if probability is None else torch.tensor(probability, dtype=dtype).log()
        ),
        "temperature": inputs.get("temperature", 1.0),
        "candidate_mask": None if mask is None else torch.tensor(mask),
        "num_hard_negatives": inputs.get("num_hard_negatives"),
    }


def test_in_batch_softmax(golden_cases: Callable[[str], list[Any]]) -> None:
    for case in golden_cases("in_batch"):
        for dtype in case.dtypes:
            kind = getattr(torch, dtype)
            queries = make_leaf(case.inputs["query_embeddings"], kind)
            candidates = make_leaf(case.inputs["candidate_embeddings"], kind)
            losses = in_batch_softmax_loss(
                queries, candidates, **in_batch_arguments(case.inputs, kind)
            )
            weights = torch.tensor(
                case.inputs.get("sample_weight", [1.0] * len(queries)), dtype=kind
            )
            total = losses * weights
            expected = case.expected["loss_per_example"]  # without the weight
            case.check("loss_per_example", losses.detach(), expected, dtype)
            case.check("loss_sum", total.sum().detach(), case.expected["loss_sum"], dtype)
            leaves = {"grad_query": queries, "grad_candidate": candidates}
            check_gradients(case, total, leaves, dtype)


def test_in_batch_softmax_is_a_sampled_softmax(golden_cases: Callable[[str], list[Any]]) -> None:
    """The same cases through the other public name: the batch's positives are the sample."""
    plain = {"num_hard_negatives", "score_mask"}
    cases = [case for case in golden_cases("in_batch") if not plain & case.inputs.keys()]
    for case in cases:
        queries = torch.tensor(case.inputs["query_embeddings"], dtype=torch.float64)
        candidates = torch.tensor(case.inputs["candidate_embeddings"], dtype=torch.float64)
        arguments = in_batch_arguments(case.inputs, torch.float64)
        rows, log_q = arguments["candidate_rows"], arguments["candidate_log_q"]
        batch = len(queries)
        losses = sampled_softmax_loss(
            queries,
            candidates[:batch],
            candidates,
            positive_rows=torch.arange(batch) if rows is None else rows[:batch],
            sampled_rows=torch.arange(len(candidates)) if rows is None else rows,
            positive_log_q=None if log_q is None else log_q[:batch],
            sampled_log_q=log_q,
            temperature=arguments["temperature"],
            own_columns=torch.arange(batch),
            remove_accidental_hits=rows is not None,
        )
        case.check("loss", losses, case.expected["loss_per_example"], "float64")
    assert cases
