"""The blocked full softmax against torch's own, block by block and in its gradients."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError, ShapeError
from recsys.losses import full_softmax_loss


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
    scores = inputs["query_embeddings"] @ inputs["catalogue_embeddings"].T
    logits = (scores + inputs["catalogue_biases"]) / inputs["temperature"]
    picked = torch.log_softmax(logits, dim=1).gather(1, inputs["positive_rows"][:, None])
    return -picked.squeeze(1)


def take_gradients(losses: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    weights = torch.linspace(0.5, 2, len(losses), dtype=losses.dtype)
    return list(torch.autograd.grad((losses * weights).sum(), leaves))


@given(rows=st.integers(1, 6), columns=st.integers(1, 14), seed=st.integers(0, 2**16))
def test_equals_log_softmax_whatever_the_blocks(rows: int, columns: int, seed: int) -> None:
    inputs = make_inputs(seed=seed)
    names = ("query_embeddings", "catalogue_embeddings", "catalogue_biases")
    leaves = [inputs[name].requires_grad_() for name in names]
    losses = full_softmax_loss(**inputs, row_block_size=rows, catalogue_block_size=columns)
    expected = compute_slowly(inputs)
    assert_close(losses, expected, rtol=1e-12, atol=1e-12)
    for actual, wanted in zip(
        take_gradients(losses, leaves), take_gradients(expected, leaves), strict=True
    ):
        assert_close(actual, wanted, rtol=1e-10, atol=1e-12)


def test_equals_log_softmax_in_float32_with_the_blocks_it_comes_with() -> None:
    inputs = make_inputs(batch=1500, candidates=9000, dtype=torch.float32)
    expected = compute_slowly(
        {k: v.double() if k.endswith(("embeddings", "biases")) else v for k, v in inputs.items()}
    )
    assert_close(full_softmax_loss(**inputs).double(), expected, rtol=1e-6, atol=1e-6)


def test_never_holds_the_whole_matrix_of_logits() -> None:
    # 256 x 100,000 logits would be 102 MB; blocks are 256 x 4096.
    inputs = make_inputs(batch=256, candidates=100_000, dtype=torch.float32)
    inputs["catalogue_embeddings"].requires_grad_()
    saved: list[int] = []

    def count(tensor: Tensor) -> Tensor:
        saved.append(tensor.nbytes)
        return tensor

    with (
        torch.profiler.profile(profile_memory=True) as profile,
        torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor),
    ):
        torch.autograd.backward(full_softmax_loss(**inputs).sum())
    largest = max(event.self_cpu_memory_usage for event in profile.events())  # bytes
    assert largest < 256 * 100_000 * 4 / 10
    assert sum(saved) < 256 * 100_000 * 4 / 10


def test_spreads_the_target_over_several_positives() -> None:
    inputs = make_inputs()
    rows = torch.tensor([[0, 1, 2]] * 5)
    inputs |= {"positive_rows": rows}
    each = torch.stack([compute_slowly(inputs | {"positive_rows": r}) for r in rows.T], dim=1)
    assert_close(full_softmax_loss(**inputs), each.mean(dim=1))
    weights = torch.tensor([[0.2, 0.8, 0.0]] * 5, dtype=torch.float64)  # the last one is padding
    actual = full_softmax_loss(**inputs, positive_weights=weights)
    assert_close(actual, (each * weights).sum(dim=1))


@given(rows=st.integers(1, 6), columns=st.integers(1, 14), seed=st.integers(0, 2**16))
def test_a_masked_candidate_leaves_the_denominator_but_never_a_positive(
    rows: int, columns: int, seed: int
) -> None:
    rng = torch.Generator().manual_seed(seed)
    inputs = make_inputs(seed=seed)
    positives = torch.rand(5, 13, generator=rng).argsort(dim=1)[:, :3]
    weights = torch.randint(2, (5, 3), generator=rng).double()  # some are padding
    mask = torch.rand(5, 13, generator=rng) < 0.5
    given_mask = mask.clone()
    losses = full_softmax_loss(
        **inputs | {"positive_rows": positives},
        positive_weights=weights,
        catalogue_mask=mask,
        row_block_size=rows,
        catalogue_block_size=columns,
    )
    scores = inputs["query_embeddings"] @ inputs["catalogue_embeddings"].T
    logits = (scores + inputs["catalogue_biases"]) / 0.5
    for b, own in enumerate(positives):
        stay = mask[b].clone()
        stay[own[weights[b] > 0]] = True
        kept = weights[b] > 0
        expected = (logits[b][stay].logsumexp(dim=0) - logits[b][own[kept]]) * weights[b][kept]
        assert_close(losses[b], expected.sum(), rtol=1e-12, atol=1e-12)
    assert torch.equal(mask, given_mask)


def test_a_query_of_padding_alone_with_every_candidate_masked_has_loss_and_gradient_zero() -> None:
    inputs = make_inputs()
    weights, mask = torch.ones(5, dtype=torch.float64), torch.ones(5, 13, dtype=torch.bool)
    weights[2], mask[2] = 0, False
    queries = inputs["query_embeddings"].requires_grad_()
    losses = full_softmax_loss(**inputs, positive_weights=weights, catalogue_mask=mask)
    assert losses[2].item() == 0
    (gradient,) = take_gradients(losses, [queries])
    assert torch.equal(gradient[2], torch.zeros_like(gradient[2]))
    assert (gradient[[0, 1, 3, 4]] != 0).all()


def test_a_mask_without_weights_keeps_every_positive() -> None:
    inputs = make_inputs()
    nothing = torch.zeros(5, 13, dtype=torch.bool)
    assert full_softmax_loss(**inputs, catalogue_mask=nothing).abs().max() < 1e-14


def test_blocks_of_whole_rows_and_of_parts_give_the_same_gradients() -> None:
    # What gives a part of a row computes the logits again in the backward pass.
    inputs = make_inputs(batch=700, candidates=3000)
    queries, catalogue = (
        inputs[name].requires_grad_() for name in ("query_embeddings", "catalogue_embeddings")
    )
    whole = full_softmax_loss(**inputs)
    parts = full_softmax_loss(**inputs, row_block_size=256, catalogue_block_size=1024)
    assert_close(whole, parts, rtol=1e-13, atol=1e-13)
    for one, other in zip(
        take_gradients(whole, [queries, catalogue]),
        take_gradients(parts, [queries, catalogue]),
        strict=True,
    ):
        assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_large_logits_neither_overflow_nor_lose_the_gradient() -> None:
    inputs = make_inputs() | {"temperature": 1e-3}
    queries = inputs["query_embeddings"].requires_grad_()
    losses = full_softmax_loss(**inputs)
    assert_close(losses, compute_slowly(inputs))
    assert torch.isfinite(take_gradients(losses, [queries])[0]).all()


def test_a_learned_temperature_gets_its_gradient() -> None:
    inputs = make_inputs()
    temperature = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    inputs |= {"temperature": temperature}
    actual, expected = (
        take_gradients(losses, [temperature])[0]
        for losses in (full_softmax_loss(**inputs), compute_slowly(inputs))
    )
    assert_close(actual, expected, rtol=1e-10, atol=0)


def test_a_learned_temperature_gets_its_gradient_beside_an_excluded_candidate() -> None:
    inputs = make_inputs()
    temperature = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    inputs |= {"temperature": temperature, "positive_rows": torch.tensor([0, 1, 2, 3, 4])}
    some = {name: inputs[f"catalogue_{name}"][:12] for name in ("embeddings", "biases")}
    without = inputs | {f"catalogue_{name}": values for name, values in some.items()}
    inputs["catalogue_biases"][12] = float("-inf")
    actual, expected = (
        take_gradients(full_softmax_loss(**given), [temperature])[0] for given in (inputs, without)
    )
    assert_close(actual, expected, rtol=1e-12, atol=0)


def test_computes_in_float32_under_autocast() -> None:
    inputs = make_inputs(dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = full_softmax_loss(**inputs)
    assert torch.equal(inside, full_softmax_loss(**inputs))


def test_half_precision_embeddings_are_read_in_float32() -> None:
    inputs = make_inputs(dtype=torch.bfloat16)
    wide = {k: v.float() if k.endswith(("embeddings", "biases")) else v for k, v in inputs.items()}
    assert torch.equal(full_softmax_loss(**inputs), full_softmax_loss(**wide))


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
            full_softmax_loss(**wrong)
    for name in ("temperature", "row_block_size", "catalogue_block_size"):
        with pytest.raises(ArgumentError, match=f"`{name}` must be above 0"):
            full_softmax_loss(**inputs | {name: 0})
