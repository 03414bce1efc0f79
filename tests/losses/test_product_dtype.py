"""Matrix products in bfloat16: how far they are off, and what they do not touch."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError
from recsys.losses import (
    full_logistic_loss,
    full_softmax_loss,
    in_batch_softmax_loss,
    negative_sampling_loss,
    noise_contrastive_loss,
    refined_softmax_loss,
    sampled_logistic_loss,
    sampled_softmax_loss,
)

Loss = Callable[..., Tensor]


def make_inputs(
    *, batch: int = 60, sampled: int = 300, dim: int = 32, seed: int = 0
) -> dict[str, Any]:
    """Make vectors of length 1, a temperature that is low, and log Q of a wide range."""
    rng = torch.Generator().manual_seed(seed)

    def embed(num: int) -> Tensor:
        vectors = torch.nn.functional.normalize(torch.randn(num, dim, generator=rng), dim=1)
        return vectors.requires_grad_()

    return {
        "query_embeddings": embed(batch),
        "positive_embeddings": embed(batch),
        "sampled_embeddings": embed(sampled),
        "positive_rows": torch.randint(50, (batch,), generator=rng),
        "sampled_rows": torch.randint(50, (sampled,), generator=rng),
        "positive_log_q": -10 * torch.rand(batch, generator=rng) - 5,
        "sampled_log_q": -10 * torch.rand(sampled, generator=rng) - 5,
        "temperature": 0.05,
    }


def refined(**inputs: Any) -> Tensor:
    return refined_softmax_loss(**inputs, num_draws=300.0)


def negative_sampling(**inputs: Any) -> Tensor:
    wanted = {name: value for name, value in inputs.items() if not name.endswith("log_q")}
    return negative_sampling_loss(**wanted)


def in_batch(**inputs: Any) -> Tensor:
    return in_batch_softmax_loss(
        inputs["query_embeddings"],
        torch.cat([inputs["positive_embeddings"], inputs["sampled_embeddings"]]),
        candidate_rows=torch.cat([inputs["positive_rows"], inputs["sampled_rows"]]),
        candidate_log_q=torch.cat([inputs["positive_log_q"], inputs["sampled_log_q"]]),
        temperature=inputs["temperature"],
        product_dtype=inputs.get("product_dtype"),
    )


def over_catalogue(loss: Loss) -> Loss:
    def compute(**inputs: Any) -> Tensor:
        return loss(
            inputs["query_embeddings"] + inputs["positive_embeddings"],
            inputs["sampled_embeddings"],
            positive_rows=inputs["positive_rows"],
            temperature=inputs["temperature"],
            catalogue_biases=inputs.get("catalogue_biases", 0.05 * inputs["sampled_log_q"]),
            product_dtype=inputs.get("product_dtype"),
        )

    return compute


LOSSES: dict[str, Loss] = {
    "sampled_softmax": sampled_softmax_loss,
    "refined": refined,
    "in_batch": in_batch,
    "full_softmax": over_catalogue(full_softmax_loss),
    "full_logistic": over_catalogue(full_logistic_loss),
    "sampled_logistic": sampled_logistic_loss,
    "noise_contrastive": noise_contrastive_loss,
    "negative_sampling": negative_sampling,
}
LEAVES = ("query_embeddings", "positive_embeddings", "sampled_embeddings")


def take_gradients(losses: Tensor, inputs: dict[str, Any]) -> list[Tensor]:
    return list(torch.autograd.grad(losses.mean(), [inputs[name] for name in LEAVES]))


@pytest.mark.parametrize("name", list(LOSSES))
def test_losses_and_gradients_are_off_by_what_bfloat16_rounds_away(name: str) -> None:
    inputs = make_inputs()
    exact = LOSSES[name](**inputs)
    rounded = LOSSES[name](**inputs, product_dtype=torch.bfloat16)
    assert rounded.dtype == torch.float32
    assert not torch.equal(rounded, exact)  # it is not ignored
    # Logits reach 20 + 15, of which 2^-9 is 0.07.
    assert_close(rounded, exact, rtol=0.02, atol=0.07)
    for one, other in zip(
        take_gradients(rounded, inputs), take_gradients(exact, inputs), strict=True
    ):
        assert (one - other).norm() < 0.03 * other.norm()


@given(level=st.floats(-80, 80), seed=st.integers(0, 2**16))
@settings(max_examples=20)
def test_the_largest_logits_are_rounded_least(level: float, seed: int) -> None:
    # Offsets of +-80 in all candidates alike: bfloat16 holds 80 to within 0.25, yet the loss is off
    # by a fraction of that against float64, of the vectors as they are rounded.
    inputs = make_inputs(seed=seed)
    inputs["positive_log_q"] = torch.full((60,), -level)
    inputs["sampled_log_q"] = inputs["sampled_log_q"] - level
    rounded = sampled_softmax_loss(**inputs, product_dtype=torch.bfloat16)
    queries = (inputs["query_embeddings"] / 0.05).bfloat16().double()
    logits = queries @ inputs["sampled_embeddings"].bfloat16().double().T - inputs["sampled_log_q"]
    hits = inputs["positive_rows"][:, None] == inputs["sampled_rows"]
    negatives = logits.masked_fill(hits, float("-inf")).logsumexp(dim=1)
    scores = inputs["query_embeddings"].double() * inputs["positive_embeddings"].double()
    positives = scores.sum(dim=1) / 0.05 + level
    expected = torch.logaddexp(positives, negatives) - positives
    assert_close(rounded.double(), expected, rtol=0.005, atol=0.02)


def test_a_removed_candidate_gets_a_gradient_of_exactly_zero() -> None:
    inputs = make_inputs(batch=6, sampled=9)
    inputs["positive_rows"][:], inputs["sampled_rows"][:] = 7, 8
    inputs["sampled_rows"][3] = 7
    losses = sampled_softmax_loss(**inputs, product_dtype=torch.bfloat16)
    gradient = take_gradients(losses, inputs)[2]
    assert torch.equal(gradient[3], torch.zeros(32))
    assert bool((gradient[2] != 0).any())


@pytest.mark.parametrize("num_excluded", [1, 150, 270])
@pytest.mark.parametrize("name", ["sampled_softmax", "full_softmax", "full_logistic"])
def test_a_bias_of_minus_infinity_excludes_a_candidate(name: str, num_excluded: int) -> None:
    inputs = make_inputs()
    inputs["positive_rows"], inputs["sampled_rows"] = torch.full((60,), 299), torch.arange(300)
    biases = torch.linspace(-1, 1, 300)
    biases[:num_excluded] = float("-inf")
    if name == "sampled_softmax":
        loss: Loss = partial(sampled_softmax_loss, sampled_biases=biases)
    else:
        loss = partial(LOSSES[name], catalogue_biases=biases)
    exact, rounded = loss(**inputs), loss(**inputs, product_dtype=torch.bfloat16)
    assert_close(rounded, exact, rtol=0.02, atol=0.07)
    expected, actual = take_gradients(exact, inputs), take_gradients(rounded, inputs)
    for one, other in zip(actual, expected, strict=True):
        assert (one - other).norm() <= 0.03 * other.norm()
    assert torch.equal(actual[2][:num_excluded], torch.zeros(num_excluded, 32))


def test_a_row_of_which_every_candidate_is_excluded_has_loss_and_gradient_zero() -> None:
    inputs = make_inputs()
    inputs["positive_rows"] += 300
    biases = torch.full((300,), float("-inf"))
    losses = sampled_softmax_loss(**inputs, sampled_biases=biases, product_dtype=torch.bfloat16)
    assert torch.equal(losses, torch.zeros(60))
    for gradient in take_gradients(losses, inputs):
        assert torch.equal(gradient, torch.zeros_like(gradient))


def test_a_row_without_a_negative_has_loss_and_gradient_zero() -> None:
    inputs = make_inputs(batch=6, sampled=9)
    inputs["positive_rows"][:], inputs["sampled_rows"][:] = 7, 7
    losses = sampled_softmax_loss(**inputs, product_dtype=torch.bfloat16)
    assert torch.equal(losses, torch.zeros(6))
    for gradient in take_gradients(losses, inputs):
        assert torch.equal(gradient, torch.zeros_like(gradient))


def test_weights_that_were_not_announced_are_obeyed() -> None:
    inputs = make_inputs()
    weights = torch.linspace(0, 3, 60)
    gradients = []
    for announced in (None, weights):
        losses = sampled_softmax_loss(
            **inputs, product_dtype=torch.bfloat16, loss_weights=announced
        )
        gradients.append(take_gradients(losses * weights, inputs))
    for one, other in zip(*gradients, strict=True):
        assert (one - other).norm() < 0.005 * other.norm()


@pytest.mark.parametrize("dtype", [torch.float32, None])
def test_the_dtype_of_the_vectors_changes_nothing(dtype: torch.dtype | None) -> None:
    inputs = make_inputs()
    losses = sampled_softmax_loss(**inputs, product_dtype=dtype)
    assert torch.equal(losses, sampled_softmax_loss(**inputs))


def test_refuses_what_cannot_be_had() -> None:
    inputs = make_inputs()
    with pytest.raises(ArgumentError, match=r"must be torch.bfloat16 or None, got torch.float16"):
        sampled_softmax_loss(**inputs, product_dtype=torch.float16)
    wide = {k: v.double() if k.endswith("embeddings") else v for k, v in inputs.items()}
    with pytest.raises(ArgumentError, match=r"must be None for torch.float64, got torch.bfloat16"):
        sampled_softmax_loss(**wide, product_dtype=torch.bfloat16)
    own = inputs | {
        "sampled_embeddings": inputs["sampled_embeddings"].expand(60, -1, -1),
        "sampled_rows": inputs["sampled_rows"].expand(60, -1),
        "sampled_log_q": inputs["sampled_log_q"].expand(60, -1),
    }
    with pytest.raises(ArgumentError, match="None for candidates of each query's own"):
        sampled_softmax_loss(**own, product_dtype=torch.bfloat16)
    with pytest.raises(ArgumentError, match="`product_dtype` must be None"):
        in_batch_softmax_loss(
            inputs["query_embeddings"],
            inputs["sampled_embeddings"],
            candidate_rows=None,
            candidate_log_q=None,
            temperature=1.0,
            num_hard_negatives=3,
            product_dtype=torch.bfloat16,
        )


@pytest.mark.parametrize("loss", [full_softmax_loss, full_logistic_loss])
@given(candidates=st.integers(1, 40), excluded=st.integers(0, 40), seed=st.integers(0, 2**16))
@settings(max_examples=20, deadline=None)
def test_candidates_that_fill_up_a_block_change_nothing(
    loss: Loss, candidates: int, excluded: int, seed: int
) -> None:
    inputs = make_inputs(batch=5, sampled=candidates, dim=3, seed=seed)
    biases = 0.05 * inputs["sampled_log_q"]
    biases[: min(excluded, candidates - 1)] = float("-inf")  # a positive stays
    found = []
    for sizes in ({}, {"row_block_size": 5, "catalogue_block_size": candidates}):  # as they are
        losses = loss(
            inputs["query_embeddings"],
            inputs["sampled_embeddings"],
            positive_rows=torch.full((5,), candidates - 1),
            temperature=0.05,
            catalogue_biases=biases,
            product_dtype=torch.bfloat16,
            **sizes,
        )
        leaves = [inputs["query_embeddings"], inputs["sampled_embeddings"]]
        found.append([losses, *torch.autograd.grad(losses.sum(), leaves)])
    assert_close(found[0], found[1], rtol=1e-2, atol=1e-3)
    assert all(bool(value.isfinite().all()) for value in found[0])
