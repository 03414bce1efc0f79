"""The in-batch softmax: what counts as a negative, against cross-entropy and by hand."""

from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close

from recsys.foundations import ArgumentError, ShapeError
from recsys.losses import in_batch_softmax_loss


def make_inputs(*, batch: int = 4, extra: int = 0, seed: int = 0) -> dict[str, Any]:
    rng = torch.Generator().manual_seed(seed)
    return {
        "query_embeddings": torch.randn(batch, 3, generator=rng),
        "candidate_embeddings": torch.randn(batch + extra, 3, generator=rng),
        "candidate_rows": torch.arange(batch + extra),
        "candidate_log_q": -torch.rand(batch + extra, generator=rng),
        "temperature": 0.5,
    }


@pytest.mark.parametrize("extra", [0, 3])
def test_equals_cross_entropy_when_all_candidates_differ(extra: int) -> None:
    inputs = make_inputs(extra=extra)
    logits = inputs["query_embeddings"] @ inputs["candidate_embeddings"].T / 0.5
    logits = logits - inputs["candidate_log_q"]
    expected = functional.cross_entropy(logits, torch.arange(4), reduction="none")
    assert_close(in_batch_softmax_loss(**inputs), expected)


def test_is_zero_with_gradient_zero_when_all_rows_are_the_same_item() -> None:
    inputs = make_inputs() | {"candidate_rows": torch.full((4,), 9)}
    leaves = {k: inputs[k].requires_grad_() for k in ("query_embeddings", "candidate_embeddings")}
    losses = in_batch_softmax_loss(**inputs)
    torch.autograd.backward(losses.sum())
    assert torch.equal(losses, torch.zeros(4))
    for leaf in leaves.values():
        assert torch.equal(leaf.grad, torch.zeros_like(leaf))


def test_a_batch_of_one_has_a_loss_of_zero() -> None:
    assert in_batch_softmax_loss(**make_inputs(batch=1)).tolist() == [0]


def test_an_accidental_hit_gets_no_gradient() -> None:
    inputs = make_inputs(batch=2, extra=1) | {"candidate_rows": torch.tensor([5, 6, 5])}
    candidates = inputs["candidate_embeddings"].requires_grad_()
    torch.autograd.backward(in_batch_softmax_loss(**inputs)[0])
    assert torch.equal(candidates.grad[2], torch.zeros(3))
    assert (candidates.grad[:2] != 0).all()


def test_a_masked_candidate_is_not_considered_but_the_positive_always_is() -> None:
    inputs = make_inputs(batch=2, extra=2)
    mask = torch.tensor([[False, True, False, True], [True, True, True, False]])
    first = in_batch_softmax_loss(**inputs, candidate_mask=mask)
    left = inputs | {
        name: inputs[name][[0, 1, 3]]
        for name in ("candidate_embeddings", "candidate_rows", "candidate_log_q")
    }
    assert_close(first[0], in_batch_softmax_loss(**left)[0])


def test_hard_negatives_are_those_of_the_highest_logits() -> None:
    # Logits 0 (positive), 3, 1, 2: the two hardest are 3 and 2.
    actual = in_batch_softmax_loss(
        torch.ones(1, 1),
        torch.tensor([[0.0], [3.0], [1.0], [2.0]]),
        candidate_rows=None,
        candidate_log_q=None,
        temperature=1.0,
        num_hard_negatives=2,
    )
    assert_close(actual, torch.tensor([0.0, 3.0, 2.0]).logsumexp(dim=0)[None])


def test_names_the_argument_that_is_wrong() -> None:
    inputs = make_inputs()
    with pytest.raises(ShapeError, match="must begin with one positive for each of the 4 queries"):
        in_batch_softmax_loss(**inputs | {"candidate_embeddings": torch.zeros(3, 3)})
    with pytest.raises(ShapeError, match=r"`candidate_log_q` must have shape \[4\]"):
        in_batch_softmax_loss(**inputs | {"candidate_log_q": torch.zeros(3)})
    with pytest.raises(ShapeError, match=r"`candidate_mask` must have shape \[4, 4\]"):
        in_batch_softmax_loss(**inputs, candidate_mask=torch.ones(4, 3, dtype=torch.bool))
    with pytest.raises(ArgumentError, match="`num_hard_negatives` must be above 0"):
        in_batch_softmax_loss(**inputs, num_hard_negatives=0)
