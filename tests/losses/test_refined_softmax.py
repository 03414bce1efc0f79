"""The refined correction against the full softmax's gradient, and by hand."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError
from recsys.losses import full_softmax_loss, refined_softmax_loss, refined_softmax_terms


def make_leaves(*, batch: int = 3, candidates: int = 6, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Give queries [B, 4] and a catalogue [C, 4]."""
    rng = torch.Generator().manual_seed(seed)
    queries, catalogue = (
        torch.randn(n, 4, generator=rng, dtype=torch.float64) for n in (batch, candidates)
    )
    return queries.requires_grad_(), catalogue.requires_grad_()


def make_positives(num: int, seed: int) -> dict[str, Any]:
    """Give `num` different positives for each of three queries, and targets; one is padding."""
    rng = torch.Generator().manual_seed(seed)
    rows = torch.rand(3, 6, generator=rng).argsort(dim=1)[:, :num]
    weights = torch.rand(3, num, generator=rng, dtype=torch.float64) + 0.1
    if num > 1:
        weights[0, 0] = 0
    return {"positive_rows": rows, "positive_weights": weights}


def refine(
    queries: Tensor, catalogue: Tensor, sampled: Tensor, counts: Tensor, **positives: Any
) -> Tensor:
    """Give the refined loss [B] where candidate r is drawn with chance in proportion to counts."""
    log_q = counts.double().log()
    rows = positives["positive_rows"]
    return refined_softmax_loss(
        queries,
        catalogue[rows],
        catalogue[sampled],
        sampled_rows=sampled,
        positive_log_q=log_q[rows],
        sampled_log_q=log_q[sampled],
        num_draws=float(counts.sum()),
        temperature=0.5,
        **positives,
    )


def assert_equal_gradients(losses: Tensor, others: Tensor, leaves: tuple[Tensor, ...]) -> None:
    actual, expected = (torch.autograd.grad(one.sum(), leaves) for one in (losses, others))
    for one, other in zip(actual, expected, strict=True):
        assert_close(one, other, rtol=1e-10, atol=1e-12)


@settings(max_examples=25)
@given(positives=st.integers(1, 3), copies=st.integers(1, 3), seed=st.integers(0, 2**16))
def test_has_the_full_softmax_gradient_over_every_candidate_equally_often(
    positives: int, copies: int, seed: int
) -> None:
    queries, catalogue = make_leaves(seed=seed)
    own = make_positives(positives, seed)
    sampled = torch.arange(6).repeat(copies)  # the positives' own draws leave
    losses = refine(queries, catalogue, sampled, torch.full((6,), copies), **own)
    full = full_softmax_loss(queries, catalogue, temperature=0.5, **own)
    assert_equal_gradients(losses, full, (queries, catalogue))


@settings(max_examples=25)
@given(
    positives=st.integers(1, 3),
    counts=st.lists(st.integers(1, 9), min_size=6, max_size=6),
    seed=st.integers(0, 2**16),
)
def test_has_the_full_softmax_gradient_over_a_sample_in_exact_proportion_to_q(
    positives: int, counts: list[int], seed: int
) -> None:
    queries, catalogue = make_leaves(seed=seed)
    own = make_positives(positives, seed)
    sampled = torch.arange(6).repeat_interleave(torch.tensor(counts))
    losses = refine(queries, catalogue, sampled, torch.tensor(counts), **own)
    full = full_softmax_loss(queries, catalogue, temperature=0.5, **own)
    assert_equal_gradients(losses, full, (queries, catalogue))


def expected_gradient(scores: Tensor, q: Tensor, size: int) -> Tensor:
    """Give the mean gradient over every sample of `size` draws from three candidates: [3], exact.

    The positive is candidate 2. Each vector of counts is one row, weighed by its multinomial
    chance. With a query of length 1 and one dimension, embeddings are scores.
    """
    counts = torch.tensor(
        [(a, b, size - a - b) for a in range(size + 1) for b in range(size + 1 - a)]
    )  # [N, 3]
    log_ways = math.lgamma(size + 1) - torch.lgamma(counts.double() + 1).sum(dim=1)
    chances = (log_ways + (counts * q.log()).sum(dim=1)).exp()  # [N]
    rows = torch.arange(3).repeat(len(counts)).repeat_interleave(counts.flatten())
    rows, log_q = rows.reshape(len(counts), size), (size * q).log()
    leaf = scores.clone().requires_grad_()
    losses = refined_softmax_loss(
        torch.ones(len(counts), 1, dtype=torch.float64),
        leaf[2].expand(len(counts), 1),
        leaf[rows][..., None],
        positive_rows=torch.full((len(counts),), 2),
        sampled_rows=rows,
        positive_log_q=log_q[2].expand(len(counts)),
        sampled_log_q=log_q[rows],
        num_draws=size,
        temperature=1.0,
    )
    return torch.autograd.grad((losses * chances).sum(), [leaf])[0]


def test_bias_falls_as_one_over_the_sample_size() -> None:
    scores = torch.tensor([0.3, -0.4, 0.6], dtype=torch.float64)
    limit = torch.softmax(scores, dim=0) - torch.tensor([0.0, 0.0, 1.0])
    q = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    small, large = (float((expected_gradient(scores, q, n) - limit).norm()) for n in (16, 64))
    assert small / large == pytest.approx(4, rel=0.1)
    assert large < 0.02 * limit.norm()


def test_is_unbiased_for_any_sample_size_where_q_is_the_model() -> None:
    # All exp(score) / Q are then one constant, so that the mean over whatever is drawn is exact.
    # What is missing is the share of samples that hold the positive alone: 0.3 to the power 5.
    q = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    full = q - torch.tensor([0.0, 0.0, 1.0])
    actual = expected_gradient(q.log() + 2, q, 5)
    assert_close(actual, full * (1 - 0.3**5), rtol=1e-12, atol=1e-14)


def test_equals_the_value_worked_by_hand() -> None:
    # Scores ln 2 and 0; one draw, Q = 1/4 for both. Q' = (1/4) / (3/4) = 1/3, so exp(0) / Q' = 3:
    # loss ln 3 - ln 2, probability 2 / (2 + 3), weight 0.6.
    terms = refined_softmax_terms(
        torch.ones(1, 1, dtype=torch.float64),
        torch.tensor([[2.0]], dtype=torch.float64).log(),
        torch.zeros(1, 1, dtype=torch.float64),
        positive_rows=torch.tensor([0]),
        sampled_rows=torch.tensor([1]),
        positive_log_q=torch.tensor([0.25], dtype=torch.float64).log(),
        sampled_log_q=torch.tensor([0.25], dtype=torch.float64).log(),
        num_draws=1,
        temperature=1.0,
    )
    wanted = (math.log(1.5), 0.6, 0.4, 1)
    actual = (terms.loss, terms.weight, terms.positive_probability, terms.num_negatives)
    assert [float(one) for one in actual] == pytest.approx(wanted, rel=1e-14)


def make_row(*, sampled_rows: list[int], seed: int = 0) -> dict[str, Any]:
    """Give one query whose positive is row 0."""
    rng = torch.Generator().manual_seed(seed)
    size = len(sampled_rows)
    return {
        "query_embeddings": torch.randn(1, 4, generator=rng),
        "positive_embeddings": torch.randn(1, 4, generator=rng),
        "sampled_embeddings": torch.randn(size, 4, generator=rng),
        "positive_rows": torch.tensor([0]),
        "sampled_rows": torch.tensor(sampled_rows),
        "positive_log_q": torch.tensor([math.log(0.1 * size)]),
        "sampled_log_q": torch.full((size,), math.log(0.1 * size)),
        "num_draws": float(size),
        "temperature": 1.0,
    }


def test_the_number_of_negatives_is_what_is_left_of_hits_own_column_and_mask() -> None:
    inputs = make_row(sampled_rows=[0, 3, 4, 0, 5, 5])
    mask = torch.tensor([[False, True, False, True, True, True]])
    terms = refined_softmax_terms(**inputs, sampled_mask=mask, own_columns=torch.tensor([4]))
    assert terms.num_negatives.tolist() == [2]  # columns 1 and 5
    left = {n: inputs[n][[1, 5]] for n in ("sampled_embeddings", "sampled_rows", "sampled_log_q")}
    alone = refined_softmax_terms(**inputs | left)
    assert_close(terms.positive_probability, alone.positive_probability)
    assert_close(terms.loss, alone.loss)


def test_a_row_without_negatives_has_loss_weight_and_gradient_zero() -> None:
    inputs = make_row(sampled_rows=[0, 0, 0]) | {"positive_log_q": torch.tensor([3.0]).log()}
    names = ("query_embeddings", "positive_embeddings", "sampled_embeddings")
    leaves = [inputs[name].requires_grad_() for name in names]
    terms = refined_softmax_terms(**inputs)
    assert (terms.loss.item(), terms.weight.item(), terms.positive_probability.item()) == (0, 0, 1)
    assert terms.num_negatives.tolist() == [0]
    for losses in (terms.loss, refined_softmax_loss(**inputs)):
        for gradient in torch.autograd.grad(losses.sum(), leaves, retain_graph=True):
            assert torch.equal(gradient, torch.zeros_like(gradient))


def test_only_the_loss_of_the_terms_has_a_gradient() -> None:
    inputs = make_row(sampled_rows=[1, 2])
    inputs["query_embeddings"].requires_grad_()
    terms = refined_softmax_terms(**inputs)
    assert terms.loss.requires_grad
    assert not terms.weight.requires_grad
    assert not terms.positive_probability.requires_grad


def test_the_weight_keeps_its_digits_where_the_positive_is_nearly_certain() -> None:
    # 1 - P is about exp(-60): 1 less a rounded P would be 0.
    inputs = make_row(sampled_rows=[1]) | {"num_draws": 1.0}
    inputs |= {name: torch.ones(1, 1) for name in ("query_embeddings", "sampled_embeddings")}
    inputs |= {"positive_embeddings": torch.tensor([[61.0]])}
    inputs |= {name: torch.tensor([0.5]).log() for name in ("positive_log_q", "sampled_log_q")}
    terms = refined_softmax_terms(**inputs)  # Q' = 1
    assert_close(terms.weight.double(), torch.tensor([-60.0]).double().exp(), rtol=1e-5, atol=0)


@given(scale=st.floats(0.1, 1000.0))
def test_asks_only_for_the_probability_of_one_draw(scale: float) -> None:
    inputs = make_row(sampled_rows=[1, 2, 0, 4])
    scaled = inputs | {"num_draws": inputs["num_draws"] * scale}
    scaled |= {n: inputs[n] + math.log(scale) for n in ("positive_log_q", "sampled_log_q")}
    expected = refined_softmax_loss(**inputs)
    assert_close(refined_softmax_loss(**scaled), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("num_draws", [0.0, -1.0, float("nan")])
def test_refuses_a_number_of_draws_that_is_not_above_zero(num_draws: float) -> None:
    inputs = make_row(sampled_rows=[1, 2]) | {"num_draws": num_draws}
    with pytest.raises(ArgumentError, match="`num_draws` must be above 0"):
        refined_softmax_loss(**inputs)


def test_chances_that_sum_to_more_than_one_give_no_number() -> None:
    # An expected count of 2 in a sample of 1: not even rounding makes that a chance.
    inputs = make_row(sampled_rows=[1, 2]) | {"num_draws": 1.0}
    inputs |= {"positive_log_q": torch.tensor([2.0]).log()}
    assert torch.isnan(refined_softmax_loss(**inputs)).all()
