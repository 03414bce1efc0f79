"""The sampled softmax against a full softmax, values worked by hand, and its invariances."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError, ShapeError
from recsys.losses import sampled_softmax_loss


def make_inputs(*, batch: int = 3, sampled: int = 5, seed: int = 0) -> dict[str, Any]:
    rng = torch.Generator().manual_seed(seed)
    return {
        "query_embeddings": torch.randn(batch, 4, generator=rng),
        "positive_embeddings": torch.randn(batch, 4, generator=rng),
        "sampled_embeddings": torch.randn(sampled, 4, generator=rng),
        "positive_rows": torch.arange(batch),
        "sampled_rows": torch.arange(batch, batch + sampled),  # no accidental hit
        "positive_log_q": -torch.rand(batch, generator=rng),
        "sampled_log_q": -torch.rand(sampled, generator=rng),
        "temperature": 0.5,
    }


def take_gradients(inputs: dict[str, Any], *names: str) -> list[Tensor]:
    leaves = {name: inputs[name].clone().requires_grad_() for name in names}
    torch.autograd.backward(sampled_softmax_loss(**inputs | leaves).sum())
    return [leaf.grad for leaf in leaves.values() if leaf.grad is not None]


def test_equals_the_full_softmax_when_every_candidate_is_sampled_once() -> None:
    inputs = make_inputs(sampled=6)
    catalogue, rows = inputs["sampled_embeddings"], torch.tensor([5, 0, 2])
    inputs |= {"positive_embeddings": catalogue[rows], "positive_rows": rows}
    inputs |= {"sampled_rows": torch.arange(6)}  # holds the positives: none may count twice
    inputs |= {"positive_log_q": torch.zeros(3), "sampled_log_q": torch.zeros(6)}
    full = torch.log_softmax(inputs["query_embeddings"] @ catalogue.T / 0.5, dim=1)
    assert_close(sampled_softmax_loss(**inputs), -full[torch.arange(3), rows])


def test_spreads_the_target_over_several_positives_as_the_full_softmax_does() -> None:
    inputs = make_inputs(sampled=6)
    catalogue, rows = inputs["sampled_embeddings"], torch.tensor([[5, 1], [0, 3], [2, 2]])
    weights = torch.tensor([[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]])  # the last is padding
    inputs |= {"positive_embeddings": catalogue[rows], "positive_rows": rows}
    inputs |= {"sampled_rows": torch.arange(6), "positive_log_q": None, "sampled_log_q": None}
    full = torch.log_softmax(inputs["query_embeddings"] @ catalogue.T / 0.5, dim=1)
    expected = -(full.gather(1, rows) * weights).sum(dim=1)
    assert_close(sampled_softmax_loss(**inputs, positive_weights=weights), expected)


def test_a_masked_candidate_is_as_if_it_had_not_been_drawn() -> None:
    inputs = make_inputs(batch=2)
    mask = torch.tensor([[True, False, True, True, False], [True, True, True, True, True]])
    names = ("sampled_embeddings", "sampled_rows", "sampled_log_q")
    left = inputs | {name: inputs[name][mask[0]] for name in names}
    actual = sampled_softmax_loss(**inputs, sampled_mask=mask)
    assert_close(actual[0], sampled_softmax_loss(**left)[0])
    assert_close(actual[1], sampled_softmax_loss(**inputs)[1])


def test_equals_the_value_worked_by_hand() -> None:
    # Inner products 1, 0, -1. Q = 1/2 for the positive, 1/4 for the others, so the softmax
    # weights are 2e, 4, 4/e and the loss is ln(1 + 2/e + 2/e^2) = 0.69636.
    inputs = make_inputs(batch=1, sampled=2) | {"temperature": 1.0}
    inputs |= {"query_embeddings": torch.ones(1, 1), "positive_embeddings": torch.ones(1, 1)}
    inputs |= {"sampled_embeddings": torch.tensor([[0.0], [-1.0]])}
    inputs |= {"positive_log_q": torch.tensor([0.5]).log()}
    inputs |= {"sampled_log_q": torch.tensor([0.25, 0.25]).log()}
    assert_close(sampled_softmax_loss(**inputs), torch.tensor([0.69636]), rtol=0, atol=1e-5)


def test_divides_scores_and_biases_by_the_temperature_but_not_log_q() -> None:
    # (1 + 1) / 2 - ln 1 = 1 for the positive, (0 + 2) / 2 - ln e = 0 for the other:
    # ln(1 + 1/e) = 0.31326.
    inputs = make_inputs(batch=1, sampled=1) | {"temperature": 2.0}
    inputs |= {"query_embeddings": torch.ones(1, 1), "positive_embeddings": torch.ones(1, 1)}
    inputs |= {"sampled_embeddings": torch.zeros(1, 1), "sampled_log_q": torch.ones(1)}
    inputs |= {"positive_log_q": torch.zeros(1), "positive_biases": torch.ones(1)}
    inputs |= {"sampled_biases": torch.full((1,), 2.0)}
    assert_close(sampled_softmax_loss(**inputs), torch.tensor([0.31326]), rtol=0, atol=1e-5)


@given(shift=st.floats(-20, 20), seed=st.integers(0, 2**16))
def test_ignores_a_constant_added_to_both_log_q(shift: float, seed: int) -> None:
    inputs = make_inputs(seed=seed)
    shifted = inputs | {k: inputs[k] + shift for k in ("positive_log_q", "sampled_log_q")}
    expected = sampled_softmax_loss(**inputs)
    assert_close(sampled_softmax_loss(**shifted), expected, rtol=0, atol=1e-4)


@given(seed=st.integers(0, 2**16))
def test_ignores_the_order_of_the_sample(seed: int) -> None:
    inputs = make_inputs(seed=seed)
    order = torch.randperm(5, generator=torch.Generator().manual_seed(seed))
    names = ("sampled_embeddings", "sampled_rows", "sampled_log_q")
    shuffled = inputs | {name: inputs[name][order] for name in names}
    assert_close(sampled_softmax_loss(**shuffled), sampled_softmax_loss(**inputs))


def test_every_occurrence_of_an_accidental_hit_gets_a_gradient_of_exactly_zero() -> None:
    inputs = make_inputs() | {"sampled_rows": torch.tensor([1, 7, 1, 8, 9])}
    (gradient,) = take_gradients(inputs, "sampled_embeddings")
    rows_without = inputs | {"sampled_rows": torch.tensor([5, 7, 6, 8, 9])}
    (with_all,) = take_gradients(rows_without, "sampled_embeddings")
    # Only query 1 loses the candidate: with that query alone nothing is left of the gradient.
    alone = {
        name: value[1:2] if name.startswith(("query", "positive")) else value
        for name, value in inputs.items()
    }
    (of_query_1,) = take_gradients(alone, "sampled_embeddings")
    assert torch.equal(of_query_1[[0, 2]], torch.zeros(2, 4))
    assert (of_query_1[[1, 3, 4]] != 0).all()
    assert (gradient[[0, 2]] != with_all[[0, 2]]).all()


def test_hits_stay_when_asked_to_but_never_the_own_column() -> None:
    inputs = make_inputs(batch=2, sampled=3) | {"sampled_rows": torch.tensor([0, 1, 0])}
    inputs |= {"own_columns": torch.tensor([0, 1])}
    kept = sampled_softmax_loss(**inputs, remove_accidental_hits=False)
    logits = inputs["query_embeddings"] @ inputs["sampled_embeddings"].T / 0.5
    logits = logits - inputs["sampled_log_q"]
    own = (inputs["query_embeddings"] * inputs["positive_embeddings"]).sum(dim=1) / 0.5
    own = own - inputs["positive_log_q"]
    left = torch.tensor([[1, 2], [0, 2]])  # query 0 keeps column 2, another copy of its positive
    denominator = torch.cat([own[:, None], logits.gather(1, left)], dim=1).logsumexp(dim=1)
    assert_close(kept, denominator - own)


def test_is_zero_with_gradient_zero_where_no_negative_is_left() -> None:
    inputs = make_inputs() | {"sampled_rows": torch.full((5,), 1)}
    assert sampled_softmax_loss(**inputs)[1].item() == 0
    one = {
        name: value[1:2] if name.startswith(("query", "positive")) else value
        for name, value in inputs.items()
    }
    for gradient in take_gradients(
        one, "query_embeddings", "positive_embeddings", "sampled_embeddings"
    ):
        assert torch.equal(gradient, torch.zeros_like(gradient))


def test_a_stretch_of_hits_far_from_the_other_logits_keeps_the_gradient_finite() -> None:
    # 9000 columns, the last 5000 of them hits of query 0; the logits lie near -300.
    inputs = make_inputs(sampled=9000) | {"sampled_log_q": torch.full((9000,), 300.0)}
    inputs |= {"positive_log_q": torch.full((3,), 300.0)}
    inputs["sampled_rows"] = torch.where(torch.arange(9000) < 4000, 7, 0)
    queries, sampled = take_gradients(inputs, "query_embeddings", "sampled_embeddings")
    assert torch.isfinite(queries).all()
    alone = {
        name: value[:1] if name.startswith(("query", "positive")) else value
        for name, value in inputs.items()
    }
    (of_query_0,) = take_gradients(alone, "sampled_embeddings")
    assert torch.equal(of_query_0[4000:], torch.zeros(5000, 4))
    assert torch.isfinite(sampled).all()


def test_an_empty_sample_gives_a_loss_of_zero() -> None:
    assert torch.equal(sampled_softmax_loss(**make_inputs(sampled=0)), torch.zeros(3))


def test_a_sample_for_each_query_equals_the_shared_one_when_all_are_the_same() -> None:
    inputs = make_inputs() | {"sampled_rows": torch.tensor([1, 7, 1, 8, 9])}
    repeated = {
        name: inputs[name].expand(3, *inputs[name].shape)
        for name in ("sampled_embeddings", "sampled_rows", "sampled_log_q")
    }
    assert_close(sampled_softmax_loss(**inputs | repeated), sampled_softmax_loss(**inputs))


def test_a_sample_for_each_query_is_read_row_by_row() -> None:
    inputs = make_inputs(batch=2, sampled=3)
    second = make_inputs(batch=2, sampled=3, seed=1)
    names = ("sampled_embeddings", "sampled_rows", "sampled_log_q")
    stacked = {name: torch.stack([inputs[name], second[name]]) for name in names}
    actual = sampled_softmax_loss(**inputs | stacked)
    others = {name: second[name] for name in names}
    assert_close(actual[0], sampled_softmax_loss(**inputs)[0])
    assert_close(actual[1], sampled_softmax_loss(**inputs | others)[1])


def test_several_positives_share_the_denominator() -> None:
    # Logits 0 and 0 for the positives, 0 for the one negative: each cross-entropy is ln 3.
    actual = sampled_softmax_loss(
        torch.zeros(1, 2),
        torch.ones(1, 2, 2),
        torch.ones(1, 2),
        positive_rows=torch.tensor([[4, 5]]),
        sampled_rows=torch.tensor([6]),
        positive_log_q=None,
        sampled_log_q=None,
        temperature=1.0,
    )
    assert_close(actual, torch.tensor([3.0]).log())


def test_no_correction_is_a_correction_by_equal_log_q() -> None:
    inputs = make_inputs()
    none = sampled_softmax_loss(**inputs | {"positive_log_q": None, "sampled_log_q": None})
    equal = {"positive_log_q": torch.full((3,), -2.0), "sampled_log_q": torch.full((5,), -2.0)}
    assert_close(none, sampled_softmax_loss(**inputs | equal))


def test_a_learned_temperature_gets_the_gradient_of_finite_differences() -> None:
    inputs: dict[str, Any] = {
        name: value.double() if isinstance(value, Tensor) and value.is_floating_point() else value
        for name, value in make_inputs().items()
    }
    temperature = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    torch.autograd.backward(sampled_softmax_loss(**inputs | {"temperature": temperature}).sum())
    above, below = (
        sampled_softmax_loss(**inputs | {"temperature": 0.5 + step}).sum() for step in (1e-6, -1e-6)
    )
    assert temperature.grad is not None
    assert_close(temperature.grad, (above - below) / 2e-6, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_computes_in_float32_from_half_precision_and_under_autocast(dtype: torch.dtype) -> None:
    inputs = make_inputs(batch=8, sampled=40)
    names = ("query_embeddings", "positive_embeddings", "sampled_embeddings")
    rounded = {name: inputs[name].to(dtype) for name in names}
    exact = sampled_softmax_loss(**inputs | {k: v.float() for k, v in rounded.items()})
    assert torch.equal(sampled_softmax_loss(**inputs | rounded), exact)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = sampled_softmax_loss(**inputs)
    assert inside.dtype == torch.float32
    assert torch.equal(inside, sampled_softmax_loss(**inputs))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("query_embeddings", (3,)),
        ("positive_embeddings", (2, 4)),
        ("positive_embeddings", (3, 2, 5)),
        ("sampled_embeddings", (5, 3)),
        ("positive_log_q", (3, 1)),
        ("sampled_log_q", (7,)),
        ("positive_biases", (2,)),
        ("sampled_biases", (3, 5)),
    ],
)
def test_names_the_argument_whose_shape_is_wrong(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=f"`{name}` must have shape"):
        sampled_softmax_loss(**make_inputs() | {name: torch.zeros(shape)})


@pytest.mark.parametrize("name", ["positive_rows", "sampled_rows"])
def test_names_the_rows_whose_shape_is_wrong(name: str) -> None:
    with pytest.raises(ShapeError, match="must have shape"):
        sampled_softmax_loss(**make_inputs() | {name: torch.zeros(2, 2, dtype=torch.int64)})


def test_refuses_own_columns_of_another_batch() -> None:
    with pytest.raises(ShapeError, match=r"`own_columns` must have shape \[3\]"):
        sampled_softmax_loss(**make_inputs(), own_columns=torch.arange(2))


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_refuses_a_temperature_that_is_not_above_zero(temperature: float) -> None:
    with pytest.raises(ArgumentError, match="`temperature` must be above 0"):
        sampled_softmax_loss(**make_inputs() | {"temperature": temperature})


@pytest.mark.parametrize("name", ["positive_log_q", "sampled_log_q"])
def test_refuses_half_a_correction(name: str) -> None:
    with pytest.raises(ArgumentError, match="must both be given or both None"):
        sampled_softmax_loss(**make_inputs() | {name: None})
