"""Candidates of each query's own by their places: what copies of their vectors give."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError, ShapeError
from recsys.losses import (
    PlacedEmbeddings,
    bpr_loss,
    negative_sampling_loss,
    noise_contrastive_loss,
    refined_softmax_loss,
    sampled_label_smoothing_term,
    sampled_logistic_loss,
    sampled_softmax_loss,
)

LEAVES = ("query_embeddings", "positive_embeddings", "shared", "vectors")


def make_inputs(
    *, batch: int = 3, shared: int = 4, own: int = 5, vectors: int = 6, seed: int = 0
) -> dict[str, Any]:
    rng = torch.Generator().manual_seed(seed)

    def embed(num: int) -> Tensor:
        values = torch.randn(num, 4, generator=rng, dtype=torch.float64)
        return values.requires_grad_()

    sampled = shared + own
    return {
        "query_embeddings": embed(batch),
        "positive_embeddings": embed(batch),
        "shared": embed(shared),
        "vectors": embed(vectors),
        "places": torch.randint(vectors, (batch, own), generator=rng),
        "positive_rows": torch.randint(9, (batch,), generator=rng),
        "sampled_rows": torch.randint(9, (batch, sampled), generator=rng),
        "positive_log_q": -torch.rand(batch, generator=rng, dtype=torch.float64) - 3,
        "sampled_log_q": -torch.rand(batch, sampled, generator=rng, dtype=torch.float64) - 3,
        "temperature": 0.7,
        "own_columns": torch.randint(sampled, (batch,), generator=rng),
    }


def without_log_q(loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def compute(**inputs: Any) -> Tensor:
        return loss(**{name: value for name, value in inputs.items() if "log_q" not in name})

    return compute


def smoothing(**inputs: Any) -> Tensor:
    wanted = ("query_embeddings", "positive_embeddings", "sampled_embeddings", "sampled_log_q")
    more = {"temperature": 0.7, "own_columns": inputs["own_columns"]}
    few = {name: inputs[name] for name in wanted} | more
    return sampled_label_smoothing_term(**few, num_candidates=9, smoothing=0.2)


LOSSES: dict[str, Callable[..., Tensor]] = {
    "sampled_softmax": sampled_softmax_loss,
    "refined": lambda **inputs: refined_softmax_loss(**inputs, num_draws=9.0),
    "noise_contrastive": noise_contrastive_loss,
    "sampled_logistic": sampled_logistic_loss,
    "negative_sampling": without_log_q(negative_sampling_loss),
    "bpr": without_log_q(bpr_loss),
    "label_smoothing": smoothing,
}


def compute(name: str, inputs: dict[str, Any], own: Tensor | PlacedEmbeddings) -> Tensor:
    rest = {key: inputs[key] for key in inputs if key not in ("shared", "vectors", "places")}
    return LOSSES[name](**rest, sampled_embeddings=(inputs["shared"], own))


def take_gradients(losses: Tensor, inputs: dict[str, Any]) -> list[Tensor]:
    weights = torch.linspace(0.5, 2, len(losses), dtype=losses.dtype)
    leaves = [inputs[name] for name in LEAVES]
    return list(torch.autograd.grad((losses * weights).sum(), leaves, materialize_grads=True))


@pytest.mark.parametrize("name", list(LOSSES))
@given(batch=st.integers(0, 4), own=st.integers(0, 6), seed=st.integers(0, 2**16))
def test_losses_and_gradients_are_those_of_copies(
    name: str, batch: int, own: int, seed: int
) -> None:
    inputs = make_inputs(batch=batch, own=own, seed=seed)
    vectors, places = inputs["vectors"], inputs["places"]
    placed = compute(name, inputs, PlacedEmbeddings(vectors, places))
    copied = compute(name, inputs, vectors[places])
    assert_close(placed, copied, rtol=1e-12, atol=1e-12)
    for one, other in zip(
        take_gradients(placed, inputs), take_gradients(copied, inputs), strict=True
    ):
        assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_half_precision_vectors_are_read_in_float32() -> None:
    inputs = make_inputs()
    halves = {
        key: value.detach().bfloat16() if key in LEAVES else value for key, value in inputs.items()
    }
    wide = {key: value.float() if key in LEAVES else value for key, value in halves.items()}
    losses = [
        compute("sampled_softmax", one, PlacedEmbeddings(one["vectors"], one["places"]))
        for one in (halves, wide)
    ]
    assert torch.equal(*losses)


def test_places_that_do_not_fit_are_refused() -> None:
    inputs = make_inputs()
    vectors, places = inputs["vectors"], inputs["places"]
    for own, words in (
        (PlacedEmbeddings(vectors, places[:, 1:]), r"\[1\]\.places` must have shape \[3, 5\]"),
        (PlacedEmbeddings(vectors[:, 1:], places), r"\[1\]\.vectors` must have shape \[any, 4\]"),
    ):
        with pytest.raises(ShapeError, match=words):
            compute("sampled_softmax", inputs, own)
    with pytest.raises(ArgumentError, match=r"`sampled_embeddings\[1\]\.places`"):
        compute("sampled_softmax", inputs, PlacedEmbeddings(vectors, places.double()))
