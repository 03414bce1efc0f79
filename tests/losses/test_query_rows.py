"""Losses over the catalogue of queries with many positives, against one query for each positive."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError, ShapeError
from recsys.losses import full_logistic_loss, full_softmax_loss
from recsys.losses.products import PlainProducts

Loss = Callable[..., Tensor]
LOSSES = pytest.mark.parametrize("loss", [full_softmax_loss, full_logistic_loss])
LEAVES = ("query_embeddings", "catalogue_embeddings", "catalogue_biases", "temperature")


def make_inputs(*, positives: int = 11, dtype: torch.dtype = torch.float64) -> dict[str, Any]:
    """Make four queries, one of which has no positive, and repeats among the positives."""
    rng = torch.Generator().manual_seed(positives)
    return {
        "query_embeddings": torch.randn(4, 3, generator=rng, dtype=dtype),
        "catalogue_embeddings": torch.randn(7, 3, generator=rng, dtype=dtype),
        "catalogue_biases": torch.randn(7, generator=rng, dtype=dtype),
        "positive_rows": torch.randint(7, (positives,), generator=rng),
        "query_rows": torch.randint(3, (positives,), generator=rng),
        "temperature": torch.tensor(0.5, dtype=dtype),
    }


def expand(inputs: dict[str, Any]) -> dict[str, Any]:
    """Repeat each query for each of its positives."""
    rest = {name: value for name, value in inputs.items() if name != "query_rows"}
    return rest | {"query_embeddings": inputs["query_embeddings"][inputs["query_rows"]]}


def losses_and_gradients(
    loss: Loss, inputs: dict[str, Any], **more: Any
) -> Iterator[tuple[Tensor, ...]]:
    """Give losses and gradients of both forms: of queries with many positives, and expanded."""
    leaves = [inputs[name].requires_grad_() for name in LEAVES if name in inputs]
    for form in (lambda given: given, expand):
        losses = loss(**form(inputs), **more)
        weights = torch.linspace(0.5, 2, len(losses), dtype=losses.dtype)
        yield losses, *torch.autograd.grad((losses * weights).sum(), leaves)


@LOSSES
@given(positives=st.integers(0, 40), rows=st.integers(1, 5), columns=st.integers(1, 8))
def test_equals_the_loss_of_one_query_for_each_positive(
    loss: Loss, positives: int, rows: int, columns: int
) -> None:
    inputs = make_inputs(positives=positives)
    blocks = {"row_block_size": rows, "catalogue_block_size": columns}
    together, apart = losses_and_gradients(loss, inputs, **blocks)
    assert together[0].shape == (positives,)
    for actual, expected in zip(together, apart, strict=True):
        assert_close(actual, expected, rtol=1e-10, atol=1e-12)


@LOSSES
def test_positives_are_weighed_as_in_the_loss_of_one_query_for_each(loss: Loss) -> None:
    weights = torch.linspace(0, 2, 11, dtype=torch.float64)  # the first is padding
    together, apart = losses_and_gradients(loss, make_inputs(), positive_weights=weights)
    for actual, expected in zip(together, apart, strict=True):
        assert_close(actual, expected, rtol=1e-10, atol=1e-12)
    softmax = loss is full_softmax_loss
    assert together[0][0] == 0 if softmax else together[0][0] > 0  # one of the rest, that is


def test_a_smoothed_target_is_that_of_one_query_for_each_positive() -> None:
    together, apart = losses_and_gradients(full_softmax_loss, make_inputs(), label_smoothing=0.3)
    for actual, expected in zip(together, apart, strict=True):
        assert_close(actual, expected, rtol=1e-10, atol=1e-12)


def test_many_pairs_of_wide_vectors_have_the_gradient_of_the_full_form() -> None:
    # Pairs are gathered some thousands at a time: 3,000 of width 300 take several turns.
    rng = torch.Generator().manual_seed(0)
    inputs: dict[str, Any] = {
        "query_embeddings": torch.randn(4, 300, generator=rng),
        "catalogue_embeddings": torch.randn(7, 300, generator=rng),
        "positive_rows": torch.randint(7, (3000,), generator=rng),
        "query_rows": torch.randint(4, (3000,), generator=rng),
        "temperature": 10.0,
    }
    leaves = [inputs["query_embeddings"], inputs["catalogue_embeddings"]]
    for leaf in leaves:
        leaf.requires_grad_()
    losses, expected = full_softmax_loss(**inputs), full_softmax_loss(**expand(inputs))
    assert_close(losses, expected, rtol=1e-5, atol=1e-4)
    for actual, wanted in zip(
        torch.autograd.grad(losses.mean(), leaves),
        torch.autograd.grad(expected.mean(), leaves),
        strict=True,
    ):
        assert_close(actual, wanted, rtol=1e-4, atol=1e-6)


@LOSSES
def test_the_sum_over_the_catalogue_is_computed_once_a_query(loss: Loss) -> None:
    # 2,000 positives of 2 queries: the expanded form has 2,000 x 1,000 logits, this one 2 x 1,000.
    rng = torch.Generator().manual_seed(0)
    inputs = {
        "query_embeddings": torch.randn(2, 4, generator=rng),
        "catalogue_embeddings": torch.randn(1000, 4, generator=rng).requires_grad_(),
        "positive_rows": torch.randint(1000, (2000,), generator=rng),
        "query_rows": torch.arange(2000) % 2,
        "temperature": 1.0,
    }
    with torch.profiler.profile(profile_memory=True) as profile:
        torch.autograd.backward(loss(**inputs).sum())
    largest = max(event.self_cpu_memory_usage for event in profile.events())  # bytes
    assert largest < 2000 * 1000 * 4 / 20


@LOSSES
def test_thousands_of_unequal_weights_a_query_take_one_pass(
    loss: Loss, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = torch.Generator().manual_seed(0)
    inputs: dict[str, Any] = {
        "query_embeddings": torch.randn(4, 8, generator=rng),
        "catalogue_embeddings": torch.randn(300, 8, generator=rng).requires_grad_(),
        "positive_rows": torch.randint(300, (20_000,), generator=rng),
        "query_rows": torch.arange(20_000) % 4,
        "temperature": 1.0,
    }
    weights = torch.rand(20_000, generator=rng)
    calls, logits = [], PlainProducts.logits

    def count(self: PlainProducts, rows: slice, columns: slice) -> tuple[Tensor, Tensor | None]:
        calls.append(rows)
        return logits(self, rows, columns)

    monkeypatch.setattr(PlainProducts, "logits", count)
    losses = loss(**inputs, loss_weights=weights)
    torch.autograd.backward((losses * weights).sum() / weights.sum())
    assert len(calls) == 1


@LOSSES
def test_names_the_argument_that_is_wrong(loss: Loss) -> None:
    inputs = make_inputs()
    with pytest.raises(ArgumentError, match=r"`query_rows` must be in \[0, 4\), got 4"):
        loss(**inputs | {"query_rows": torch.full((11,), 4)})
    with pytest.raises(ShapeError, match="`query_rows` must have shape"):
        loss(**inputs | {"query_rows": torch.zeros(3, dtype=torch.int64)})
    with pytest.raises(ShapeError, match="`positive_rows` must have shape"):
        loss(**inputs | {"positive_rows": torch.zeros(11, 2, dtype=torch.int64)})
    with pytest.raises(ArgumentError, match="`catalogue_mask` must be None with `query_rows`"):
        loss(**inputs, catalogue_mask=torch.ones(4, 7, dtype=torch.bool))
