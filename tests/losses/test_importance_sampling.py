"""The importance-sampling loss against a slow version, where it is exact, and its edges."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError, ShapeError
from recsys.losses import (
    effective_sample_size,
    full_softmax_loss,
    importance_log_weights,
    importance_sampling_loss,
    importance_weights,
)


def make_inputs(*, batch: int = 3, sampled: int = 5, seed: int = 0) -> dict[str, Any]:
    rng = torch.Generator().manual_seed(seed)
    return {
        "query_embeddings": torch.randn(batch, 4, generator=rng),
        "positive_embeddings": torch.randn(batch, 4, generator=rng),
        "sampled_embeddings": torch.randn(sampled, 4, generator=rng),
        "positive_rows": torch.arange(batch),
        "sampled_rows": torch.arange(sampled),  # the positives among them
        "sampled_log_q": -torch.rand(sampled, generator=rng),
        "temperature": 0.5,
    }


def test_equals_the_value_worked_by_hand() -> None:
    # Scores 1 + 1, 0 + 2 and -2 + 0 over the temperature 2: 1, 1, -1. Q = 1/2 and 1/4:
    # log(2e + 4/e) - 1 = 0.93326.
    actual = importance_sampling_loss(
        torch.ones(1, 1),
        torch.ones(1, 1),
        torch.tensor([[0.0], [-2.0]]),
        sampled_log_q=torch.tensor([0.5, 0.25]).log(),
        temperature=2.0,
        positive_biases=torch.ones(1),
        sampled_biases=torch.tensor([2.0, 0.0]),
    )
    e = torch.tensor(1.0).exp()
    assert_close(actual, (2 * e + 4 / e).log().reshape(1) - 1)


@given(seed=st.integers(0, 2**16), shared=st.booleans())
def test_equals_a_sum_over_what_is_left_one_by_one(seed: int, shared: bool) -> None:
    inputs, rng = make_inputs(seed=seed), torch.Generator().manual_seed(seed)
    inputs |= {"positive_embeddings": torch.randn(3, 2, 4, generator=rng)}
    inputs |= {"positive_rows": torch.zeros(3, 2, dtype=torch.int64)}
    if not shared:
        inputs |= {"sampled_embeddings": torch.randn(3, 5, 4, generator=rng)}
        inputs |= {"sampled_log_q": -torch.rand(3, 5, generator=rng)}
        inputs |= {"sampled_rows": torch.zeros(3, 5, dtype=torch.int64)}
    target = torch.tensor([[1.0, 0.0], [0.25, 0.75], [0.5, 0.5]])
    mask = torch.rand(3, 5, generator=rng) < 0.7
    mask[:, 0] = True
    own = torch.tensor([1, 1, 4])
    actual = importance_sampling_loss(
        **inputs, own_columns=own, sampled_mask=mask, positive_weights=target
    )
    embeddings = inputs["sampled_embeddings"].expand(3, 5, 4).double()
    log_q = inputs["sampled_log_q"].expand(3, 5).double()
    for b in range(3):
        query = inputs["query_embeddings"][b].double() / 0.5
        z = sum(
            ((query @ embeddings[b, j]).exp() / log_q[b, j].exp()).item()
            for j in range(5)
            if mask[b, j] and j != own[b]
        )
        scores = inputs["positive_embeddings"][b].double() @ query
        expected = (target[b] * (torch.tensor(z).log() - scores)).sum()
        assert_close(actual[b], expected.float(), rtol=1e-5, atol=1e-5)


@given(seed=st.integers(0, 2**16), shared=st.booleans())
def test_log_weights_are_scores_less_log_q_one_by_one(seed: int, shared: bool) -> None:
    inputs, rng = make_inputs(seed=seed), torch.Generator().manual_seed(seed)
    places = torch.arange(5).expand(3, 5)
    log_q = inputs["sampled_log_q"].expand(3, 5)
    own: dict[str, Tensor] = {"log_q": inputs["sampled_log_q"]}
    if not shared:
        places, log_q = torch.randint(5, (3, 5), generator=rng), -torch.rand(3, 5, generator=rng)
        own = {"log_q": log_q, "places": places}
    queries, candidates = inputs["query_embeddings"], inputs["sampled_embeddings"]
    actual = importance_log_weights(queries, candidates, temperature=0.5, **own)
    for b in range(3):
        for j in range(5):
            candidate = candidates[places[b, j]].double()
            expected = queries[b].double() @ candidate / 0.5 - log_q[b, j].double()
            assert_close(actual[b, j], expected.float(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_log_weights_hold_loss_and_gradient_in_float32_or_wider(dtype: torch.dtype) -> None:
    inputs = make_inputs() | {"temperature": torch.tensor(0.5)}
    for name in ("query_embeddings", "positive_embeddings", "sampled_embeddings"):
        inputs[name] = inputs[name].to(dtype).requires_grad_()
    queries, sampled = inputs["query_embeddings"], inputs["sampled_embeddings"]
    log_weights = importance_log_weights(
        queries, sampled, log_q=inputs["sampled_log_q"], temperature=inputs["temperature"]
    )
    assert log_weights.dtype == torch.float32
    positives = (queries.float() * inputs["positive_embeddings"].float()).sum(dim=1) / 0.5
    found_loss, loss = log_weights.logsumexp(dim=1) - positives, importance_sampling_loss(**inputs)
    assert_close(found_loss, loss)
    wanted = torch.autograd.grad(loss.sum(), [queries, sampled], retain_graph=True)
    found = torch.autograd.grad(found_loss.sum(), [queries, sampled])
    # In bfloat16 the parts of a gradient of about 1 are rounded to 2^-8 each before they meet.
    tolerance = 0.02 if dtype == torch.bfloat16 else 1e-5
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    ("name", "shape", "places"),
    [
        ("query_embeddings", (3,), None),
        ("candidate_embeddings", (5, 3), None),
        ("log_q", (4,), None),
        ("log_q", (3, 5), None),
        ("log_q", (5,), (3, 2)),
        ("places", (2, 2), (2, 2)),
    ],
)
def test_log_weights_refuse_shapes_that_disagree(
    name: str, shape: tuple[int, ...], places: tuple[int, ...] | None
) -> None:
    inputs: dict[str, Any] = {
        "query_embeddings": torch.zeros(3, 4),
        "candidate_embeddings": torch.zeros(5, 4),
        "log_q": torch.zeros(places or 5),
        "places": None if places is None else torch.zeros(places, dtype=torch.int64),
    }
    if name != "places":
        inputs |= {name: torch.zeros(shape)}
    with pytest.raises(ShapeError, match=f"`{name}` must have shape"):
        importance_log_weights(**inputs, temperature=1.0)


def test_equals_the_full_softmax_when_every_candidate_is_sampled_once() -> None:
    inputs = make_inputs(sampled=6) | {"sampled_log_q": torch.zeros(6)}
    rows = torch.tensor([5, 0, 2])
    catalogue = inputs["sampled_embeddings"].requires_grad_()
    queries = inputs["query_embeddings"].requires_grad_()
    biases = torch.linspace(-1, 1, 6).requires_grad_()
    inputs |= {"positive_embeddings": catalogue[rows], "positive_rows": rows}
    estimate = importance_sampling_loss(
        **inputs, positive_biases=biases[rows], sampled_biases=biases
    )
    full = full_softmax_loss(
        queries, catalogue, positive_rows=rows, temperature=0.5, catalogue_biases=biases
    )
    assert_close(estimate, full)
    leaves = [queries, catalogue, biases]
    expected = torch.autograd.grad(full.sum(), leaves)
    assert_close(torch.autograd.grad(estimate.sum(), leaves), expected)


@given(seed=st.integers(0, 2**16))
def test_gives_each_draw_its_normalised_weight_as_gradient(seed: int) -> None:
    inputs = make_inputs(seed=seed)
    biases = torch.zeros(3, 5, requires_grad=True)
    inputs |= {"sampled_embeddings": inputs["sampled_embeddings"].expand(3, 5, 4)}
    inputs |= {"sampled_log_q": inputs["sampled_log_q"].expand(3, 5)}
    inputs |= {"sampled_rows": inputs["sampled_rows"].expand(3, 5), "sampled_biases": biases}
    (gradient,) = torch.autograd.grad(importance_sampling_loss(**inputs).sum(), [biases])
    scores = (inputs["sampled_embeddings"] @ inputs["query_embeddings"][..., None]).squeeze(2) / 0.5
    weights = importance_weights(scores - inputs["sampled_log_q"])
    assert_close(gradient * 0.5, weights)  # a bias is divided by the temperature


def test_a_constant_added_to_log_q_leaves_the_loss_and_not_the_gradient() -> None:
    inputs = make_inputs()
    queries = inputs["query_embeddings"].requires_grad_()
    moved = inputs | {"sampled_log_q": inputs["sampled_log_q"] + 3}
    losses, others = importance_sampling_loss(**inputs), importance_sampling_loss(**moved)
    assert_close(others, losses - 3)
    expected = torch.autograd.grad(losses.sum(), [queries])
    assert_close(torch.autograd.grad(others.sum(), [queries]), expected)


def test_accidental_hits_stay_and_the_own_column_leaves() -> None:
    # In float32 what a column adds to one of the losses is rounded away.
    inputs = make_inputs()
    inputs |= {k: v.double() for k, v in inputs.items() if k.endswith(("embeddings", "log_q"))}
    elsewhere = inputs | {"sampled_rows": torch.arange(10, 15)}
    losses = importance_sampling_loss(**inputs)
    assert torch.equal(importance_sampling_loss(**elsewhere), losses)
    own = importance_sampling_loss(**inputs, own_columns=torch.arange(3))
    mask = torch.arange(5) != torch.arange(3)[:, None]
    assert torch.equal(own, importance_sampling_loss(**inputs, sampled_mask=mask))
    assert (own < losses).all()


def test_rows_and_the_positives_q_do_not_enter() -> None:
    inputs = make_inputs()
    without = {k: v for k, v in inputs.items() if k not in ("positive_rows", "sampled_rows")}
    losses = importance_sampling_loss(**inputs, positive_log_q=torch.tensor([-1.0, -2.0, -3.0]))
    assert torch.equal(importance_sampling_loss(**without), losses)


def test_a_sample_for_each_query_equals_the_shared_one_when_all_are_the_same() -> None:
    inputs = make_inputs()
    repeated = {
        name: inputs[name].expand(3, *inputs[name].shape)
        for name in ("sampled_embeddings", "sampled_rows", "sampled_log_q")
    }
    expected = importance_sampling_loss(**inputs)
    assert_close(importance_sampling_loss(**inputs | repeated), expected)


def test_a_large_shared_sample_is_one_sum() -> None:
    # More than one block of both queries and candidates.
    inputs = make_inputs(batch=300, sampled=5000)
    scores = inputs["query_embeddings"] @ inputs["sampled_embeddings"].T / 0.5
    positives = (inputs["query_embeddings"] * inputs["positive_embeddings"]).sum(dim=1) / 0.5
    log_z = (scores - inputs["sampled_log_q"]).double().logsumexp(dim=1)
    actual = importance_sampling_loss(**inputs)
    assert_close(actual, (log_z - positives).float(), rtol=1e-5, atol=1e-5)


def test_is_zero_with_gradient_zero_where_nothing_is_left() -> None:
    inputs = make_inputs()
    names = ("query_embeddings", "positive_embeddings", "sampled_embeddings")
    leaves = {name: inputs[name].requires_grad_() for name in names}
    mask = torch.tensor([[True], [False], [True]]).expand(3, 5)
    for several in (False, True):
        if several:
            inputs |= {"positive_embeddings": leaves["positive_embeddings"][:, None]}
            inputs |= {"positive_rows": inputs["positive_rows"][:, None]}
            inputs |= {"positive_weights": torch.ones(3, 1)}
        losses = importance_sampling_loss(**inputs, sampled_mask=mask)
        assert losses[1].item() == 0
        for gradient in torch.autograd.grad(losses[1], list(leaves.values())):
            assert torch.equal(gradient, torch.zeros_like(gradient))
    assert torch.equal(importance_sampling_loss(**make_inputs(sampled=0)), torch.zeros(3))


def test_a_positive_of_weight_zero_is_padding() -> None:
    inputs = make_inputs()
    padded = torch.stack([inputs["positive_embeddings"], torch.full((3, 4), 1e30)], dim=1)
    twice = inputs | {"positive_rows": torch.zeros(3, 2, dtype=torch.int64)}
    leaf = padded.requires_grad_()
    losses = importance_sampling_loss(
        **twice | {"positive_embeddings": leaf}, positive_weights=torch.tensor([[1.0, 0.0]] * 3)
    )
    assert_close(losses, importance_sampling_loss(**inputs))
    (gradient,) = torch.autograd.grad(losses.sum(), [leaf])
    assert torch.equal(gradient[:, 1], torch.zeros(3, 4))


def test_weights_sum_to_one_or_to_zero() -> None:
    never = float("-inf")
    weights = importance_weights(torch.tensor([[1000.0, 1000.0, never], [never, never, never]]))
    assert torch.equal(weights, torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]))


def test_a_learned_temperature_gets_the_gradient_of_finite_differences() -> None:
    inputs: dict[str, Any] = {
        name: value.double() if isinstance(value, Tensor) and value.is_floating_point() else value
        for name, value in make_inputs().items()
    }
    temperature = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    losses = importance_sampling_loss(**inputs | {"temperature": temperature})
    (gradient,) = torch.autograd.grad(losses.sum(), [temperature])
    above, below = (
        importance_sampling_loss(**inputs | {"temperature": 0.5 + step}).sum()
        for step in (1e-6, -1e-6)
    )
    assert_close(gradient, (above - below) / 2e-6, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_computes_in_float32_from_half_precision_and_under_autocast(dtype: torch.dtype) -> None:
    inputs = make_inputs(batch=8, sampled=40)
    names = ("query_embeddings", "positive_embeddings", "sampled_embeddings")
    rounded = {name: inputs[name].to(dtype) for name in names}
    exact = importance_sampling_loss(**inputs | {k: v.float() for k, v in rounded.items()})
    assert torch.equal(importance_sampling_loss(**inputs | rounded), exact)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = importance_sampling_loss(**inputs)
    assert inside.dtype == torch.float32
    assert torch.equal(inside, importance_sampling_loss(**inputs))


def test_the_ideal_proposal_makes_every_draw_count() -> None:
    scores = torch.tensor([2.0, -1.0, 0.5, 0.0])
    log_weights = (scores - scores.log_softmax(dim=0))[torch.tensor([0, 0, 3, 1, 2, 0])]
    assert_close(importance_weights(log_weights), torch.full((6,), 1 / 6))
    assert_close(effective_sample_size(log_weights), torch.tensor(6.0))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("query_embeddings", (3,)),
        ("positive_embeddings", (2, 4)),
        ("sampled_embeddings", (5, 3)),
        ("positive_log_q", (3, 1)),
        ("sampled_log_q", (7,)),
        ("positive_biases", (2,)),
        ("sampled_biases", (3, 5)),
        ("sampled_mask", (5,)),
        ("own_columns", (2,)),
        ("positive_weights", (2,)),
        ("loss_weights", (2,)),
    ],
)
def test_names_the_argument_whose_shape_is_wrong(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=f"`{name}` must have shape"):
        importance_sampling_loss(**make_inputs() | {name: torch.zeros(shape)})


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_refuses_a_temperature_that_is_not_above_zero(temperature: float) -> None:
    with pytest.raises(ArgumentError, match="`temperature` must be above 0"):
        importance_sampling_loss(**make_inputs() | {"temperature": temperature})
