"""The full softmax of queries with many positives in one pass, against the one written out."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError
from recsys.losses import full_softmax_loss
from recsys.losses.grouped_softmax import grouped_softmax
from recsys.losses.products import PlainProducts

NUM_QUERIES, NUM_CANDIDATES, DIM = 4, 7, 3


def make_inputs(positives: int) -> dict[str, Any]:
    """Make four queries, the last without a positive; a query may choose a candidate twice."""
    rng = torch.Generator().manual_seed(positives)
    return {
        "query_embeddings": torch.randn(NUM_QUERIES, DIM, generator=rng, dtype=torch.float64),
        "catalogue_embeddings": torch.randn(NUM_CANDIDATES, DIM, generator=rng).double(),
        "catalogue_biases": torch.randn(NUM_CANDIDATES, generator=rng, dtype=torch.float64),
        "positive_rows": torch.randint(NUM_CANDIDATES, (positives,), generator=rng),
        "query_rows": torch.randint(3, (positives,), generator=rng).sort().values,
        "temperature": torch.tensor(0.5, dtype=torch.float64),
    }


def leaves_of(inputs: dict[str, Any]) -> list[Tensor]:
    names = ("query_embeddings", "catalogue_embeddings", "catalogue_biases", "temperature")
    return [inputs[name].requires_grad_() for name in names]


def write_out(inputs: dict[str, Any]) -> Tensor:
    """Compute the losses with all logits at once."""
    scores = inputs["query_embeddings"] @ inputs["catalogue_embeddings"].T
    logits = (scores + inputs["catalogue_biases"]) / inputs["temperature"]
    chances: Tensor = logits.log_softmax(dim=1)
    return -chances[inputs["query_rows"], inputs["positive_rows"]]


WEIGHTS = st.sampled_from(["alike", "announced", "not announced", "of both signs", "zeros"])


@given(positives=st.integers(0, 40), rows=st.integers(1, 5), kind=WEIGHTS)
def test_losses_and_gradients_are_those_of_all_logits_at_once(
    positives: int, rows: int, kind: str
) -> None:
    inputs = make_inputs(positives)
    leaves = leaves_of(inputs)
    weights = torch.linspace(0.5, 2, positives, dtype=torch.float64)
    weights = {
        "alike": torch.full_like(weights, 0.25),
        "of both signs": weights - 1.25,
        "zeros": weights * (torch.arange(positives) % 3 > 0),
    }.get(kind, weights)
    announced = weights * 3 if kind in ("announced", "zeros") else None
    losses = full_softmax_loss(**inputs, row_block_size=rows, loss_weights=announced)
    expected = write_out(inputs)
    assert_close(losses, expected, rtol=1e-10, atol=1e-12)
    for actual, wanted in zip(
        torch.autograd.grad((losses * weights).sum(), leaves),
        torch.autograd.grad((expected * weights).sum(), leaves),
        strict=True,
    ):
        assert_close(actual, wanted, rtol=1e-10, atol=1e-12)


def count_products(monkeypatch: pytest.MonkeyPatch, inputs: dict[str, Any], **more: Any) -> int:
    """Count the passes over the logits that losses and gradients take."""
    calls = 0
    logits = PlainProducts.logits

    def count(self: Any, rows: slice, columns: slice) -> Any:
        nonlocal calls
        calls += 1
        return logits(self, rows, columns)

    monkeypatch.setattr(PlainProducts, "logits", count)
    leaves = leaves_of(inputs)
    losses = full_softmax_loss(**inputs, **more)
    weights = torch.linspace(0.5, 2, len(losses), dtype=losses.dtype)
    torch.autograd.grad((losses * weights).sum(), leaves)
    return calls


def test_announced_weights_spare_the_second_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = torch.linspace(0.5, 2, 30, dtype=torch.float64)
    assert count_products(monkeypatch, make_inputs(30), loss_weights=weights * 7) == 1
    monkeypatch.undo()
    assert count_products(monkeypatch, make_inputs(30)) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"query_rows": torch.tensor([1, 0, 2])},  # not together
        {"catalogue_block_size": 2},  # no whole rows
        {"positive_weights": torch.ones(3, dtype=torch.float64)},
    ],
)
def test_what_does_not_suit_it_gives_the_same_by_another_way(
    change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr("recsys.losses.full_softmax.grouped_softmax", refuse)
    inputs = make_inputs(3) | change
    losses = full_softmax_loss(**inputs)
    assert_close(losses, write_out(inputs), rtol=1e-10, atol=1e-12)


def test_a_second_derivative_is_refused() -> None:
    inputs = make_inputs(5)
    leaves = leaves_of(inputs)
    losses = full_softmax_loss(**inputs)
    with pytest.raises(ArgumentError, match="`create_graph` must be False"):
        torch.autograd.grad(losses.sum(), leaves, create_graph=True)


def test_no_gradient_is_made_where_none_is_needed() -> None:
    inputs = make_inputs(9)
    losses = grouped_softmax(
        inputs["query_embeddings"],
        inputs["catalogue_embeddings"],
        None,
        query_rows=inputs["query_rows"],
        positive_rows=inputs["positive_rows"],
        loss_weights=None,
        blocks=None,
    )
    assert not losses.requires_grad
    plain = {"catalogue_biases": torch.zeros(7).double(), "temperature": torch.tensor(1.0).double()}
    assert_close(losses, write_out(inputs | plain), rtol=1e-10, atol=1e-12)


def test_no_gradient_is_computed_where_gradients_are_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(PlainProducts, "of_queries", refuse)
    monkeypatch.setattr(PlainProducts, "of_candidates", refuse)
    inputs = make_inputs(9)
    leaves_of(inputs)
    with torch.no_grad():
        losses = full_softmax_loss(**inputs)
    assert_close(losses, write_out(inputs).detach(), rtol=1e-10, atol=1e-12)
    with pytest.raises(AssertionError):
        full_softmax_loss(**inputs)


def smooth_out(inputs: dict[str, Any], smoothing: float) -> Tensor:
    """Compute the losses of a smoothed target with all logits at once."""
    scores = inputs["query_embeddings"] @ inputs["catalogue_embeddings"].T
    logits = (scores + inputs["catalogue_biases"]) / inputs["temperature"]
    return torch.nn.functional.cross_entropy(
        logits[inputs["query_rows"]],
        inputs["positive_rows"],
        label_smoothing=smoothing,
        reduction="none",
    )


SMOOTHED = pytest.mark.parametrize("smoothing", [0.1, 0.7])


@SMOOTHED
@pytest.mark.parametrize("blocks", [{}, {"catalogue_block_size": 2}])
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("announced", [True, False])
def test_a_smoothed_target_is_a_cross_entropy_with_soft_labels(
    smoothing: float, blocks: dict[str, Any], together: bool, announced: bool
) -> None:
    inputs = make_inputs(20)
    if not together:
        inputs["query_rows"] = inputs["query_rows"].roll(9)
    leaves = leaves_of(inputs)
    weights = torch.linspace(0.5, 2, 20, dtype=torch.float64)
    losses = full_softmax_loss(
        **inputs, **blocks, label_smoothing=smoothing, loss_weights=weights if announced else None
    )
    expected = smooth_out(inputs, smoothing)
    assert_close(losses, expected, rtol=1e-10, atol=1e-12)
    for actual, wanted in zip(
        torch.autograd.grad((losses * weights).sum(), leaves),
        torch.autograd.grad((expected * weights).sum(), leaves),
        strict=True,
    ):
        assert_close(actual, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"label_smoothing": 1.0}, "`label_smoothing` must be at least 0 and below 1, got 1.0"),
        (
            {"label_smoothing": 0.1, "positive_weights": torch.ones(3).double()},
            "`label_smoothing` must be 0 with a mask, weights or several columns",
        ),
    ],
)
def test_refuses_smoothing_that_has_no_meaning(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        full_softmax_loss(**make_inputs(3) | change)
