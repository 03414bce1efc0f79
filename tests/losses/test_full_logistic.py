"""The blocked full logistic loss against torch's own, block by block and in its gradients."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional
from torch.testing import assert_close

from recsys.foundations import ArgumentError, ShapeError
from recsys.losses import full_logistic_loss

LEAVES = ("query_embeddings", "catalogue_embeddings", "catalogue_biases")


def make_inputs(
    *, batch: int = 5, candidates: int = 13, dtype: torch.dtype = torch.float64, seed: int = 0
) -> dict[str, Any]:
    rng = torch.Generator().manual_seed(seed)
    return {
        "query_embeddings": torch.randn(batch, 4, generator=rng, dtype=dtype),
        "catalogue_embeddings": torch.randn(candidates, 4, generator=rng, dtype=dtype),
        "catalogue_biases": torch.randn(candidates, generator=rng, dtype=dtype),
        "positive_rows": torch.randint(candidates, (batch,), generator=rng),
        "temperature": 0.5,
    }


def compute_slowly(inputs: dict[str, Any]) -> Tensor:
    """Compute all logits, with a target of 1 where a positive of weight 1 is."""
    scores = inputs["query_embeddings"] @ inputs["catalogue_embeddings"].T
    logits = (scores + inputs["catalogue_biases"]) / inputs["temperature"]
    rows = inputs["positive_rows"].reshape(len(logits), -1)
    weights = inputs.get("positive_weights", torch.ones_like(rows)).reshape(rows.shape)
    target = torch.zeros_like(logits).scatter_reduce(1, rows, weights.to(logits), "amax")
    losses = functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
    if "catalogue_mask" in inputs:
        losses = losses.where(inputs["catalogue_mask"] | (target > 0), 0)
    return losses.sum(dim=1)


def take_gradients(losses: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    weights = torch.linspace(0.5, 2, len(losses), dtype=losses.dtype)
    return list(torch.autograd.grad((losses * weights).sum(), leaves))


@settings(max_examples=25)
@given(
    rows=st.integers(1, 6),
    columns=st.integers(1, 14),
    positives=st.integers(1, 3),
    seed=st.integers(0, 2**16),
)
def test_equals_binary_cross_entropy_whatever_the_blocks(
    rows: int, columns: int, positives: int, seed: int
) -> None:
    rng = torch.Generator().manual_seed(seed)
    inputs = make_inputs(seed=seed) | {
        "positive_rows": torch.rand(5, 13, generator=rng).argsort(dim=1)[:, :positives],
        "positive_weights": torch.randint(2, (5, positives), generator=rng).double(),
        "catalogue_mask": torch.rand(5, 13, generator=rng) < 0.7,
    }
    leaves = [inputs[name].requires_grad_() for name in LEAVES]
    losses = full_logistic_loss(**inputs, row_block_size=rows, catalogue_block_size=columns)
    expected = compute_slowly(inputs)
    assert_close(losses, expected, rtol=1e-12, atol=1e-12)
    gradients = take_gradients(losses, leaves), take_gradients(expected, leaves)
    for actual, wanted in zip(*gradients, strict=True):
        assert_close(actual, wanted, rtol=1e-10, atol=1e-12)


def test_equals_binary_cross_entropy_in_float32_with_the_blocks_it_comes_with() -> None:
    inputs = make_inputs(batch=300, candidates=9000, dtype=torch.float32)
    expected = compute_slowly(
        {k: v.double() if k.endswith(("embeddings", "biases")) else v for k, v in inputs.items()}
    )
    assert_close(full_logistic_loss(**inputs).double(), expected, rtol=1e-6, atol=0)


def test_weights_and_target_are_those_of_the_positives_alone() -> None:
    inputs = make_inputs() | {"positive_rows": torch.tensor([[0, 1]] * 5)}
    weights = torch.tensor([[0.5, 2.0]] * 5, dtype=torch.float64)
    scores = inputs["query_embeddings"] @ inputs["catalogue_embeddings"].T
    logits = (scores + inputs["catalogue_biases"]) / 0.5
    own, others = logits[:, :2], logits[:, 2:]
    target = torch.full_like(own, 0.25)
    losses = functional.binary_cross_entropy_with_logits(own, target, reduction="none")
    expected = (losses * weights).sum(dim=1) + functional.softplus(others, threshold=99).sum(dim=1)
    actual = full_logistic_loss(**inputs, positive_weights=weights, positive_target=0.25)
    assert_close(actual, expected, rtol=1e-12, atol=1e-12)


def test_never_holds_the_whole_matrix_of_logits() -> None:
    # 256 x 66,000 logits would be 68 MB; blocks are 256 x 4096.
    inputs = make_inputs(batch=256, candidates=66_000, dtype=torch.float32)
    inputs["catalogue_embeddings"].requires_grad_()
    saved: list[int] = []

    def count(tensor: Tensor) -> Tensor:
        saved.append(tensor.nbytes)
        return tensor

    with (
        torch.profiler.profile(profile_memory=True) as profile,
        torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor),
    ):
        torch.autograd.backward(full_logistic_loss(**inputs).sum())
    largest = max(event.self_cpu_memory_usage for event in profile.events())  # bytes
    assert largest < 256 * 66_000 * 4 / 8
    assert sum(saved) < 256 * 66_000 * 4 / 8


def test_keeping_and_recomputing_the_logits_give_the_same_gradients() -> None:
    # One query more takes 4097 x 4096 past the 2^24 that are kept; its weight is 0.
    inputs = make_inputs(batch=4097, candidates=4096, dtype=torch.float32)
    leaves = [inputs[name].requires_grad_() for name in LEAVES]
    recomputed = full_logistic_loss(**inputs)[:-1]
    shorter = {name: inputs[name][:-1] for name in ("query_embeddings", "positive_rows")}
    kept = full_logistic_loss(**inputs | shorter)
    assert_close(kept, recomputed, rtol=1e-6, atol=0)
    pairs = zip(take_gradients(kept, leaves), take_gradients(recomputed, leaves), strict=True)
    for one, other in pairs:
        assert_close(one, other, rtol=1e-4, atol=1e-3)


def test_large_logits_neither_overflow_nor_lose_the_gradient() -> None:
    inputs = make_inputs() | {"temperature": 1e-3}
    queries = inputs["query_embeddings"].requires_grad_()
    losses = full_logistic_loss(**inputs)
    assert_close(losses, compute_slowly(inputs))
    assert torch.isfinite(take_gradients(losses, [queries])[0]).all()


def test_a_learned_temperature_gets_its_gradient() -> None:
    inputs = make_inputs()
    temperature = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    inputs |= {"temperature": temperature}
    actual, expected = (
        take_gradients(losses, [temperature])[0]
        for losses in (full_logistic_loss(**inputs), compute_slowly(inputs))
    )
    assert_close(actual, expected, rtol=1e-10, atol=0)


def test_computes_in_float32_from_half_precision_and_under_autocast() -> None:
    inputs = make_inputs(dtype=torch.float32)
    rounded = {name: inputs[name].bfloat16() for name in LEAVES}
    exact = full_logistic_loss(**inputs | {k: v.float() for k, v in rounded.items()})
    assert torch.equal(full_logistic_loss(**inputs | rounded), exact)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = full_logistic_loss(**inputs)
    assert torch.equal(inside, full_logistic_loss(**inputs))


def test_names_the_argument_that_is_wrong() -> None:
    inputs = make_inputs()
    for name, shape in (
        ("catalogue_embeddings", (13, 3)),
        ("positive_rows", (4,)),
        ("positive_rows", (4, 2)),
        ("positive_weights", (5, 2)),
        ("catalogue_biases", (12,)),
        ("catalogue_mask", (5, 12)),
    ):
        wrong = inputs | {name: torch.zeros(shape, dtype=torch.int64)}
        with pytest.raises(ShapeError, match=f"`{name}` must have shape"):
            full_logistic_loss(**wrong)
    for name in ("temperature", "row_block_size", "catalogue_block_size"):
        with pytest.raises(ArgumentError, match=f"`{name}` must be above 0"):
            full_logistic_loss(**inputs | {name: 0})
    with pytest.raises(ArgumentError, match="`positive_target` must be above 0 and at most 1"):
        full_logistic_loss(**inputs, positive_target=0)
