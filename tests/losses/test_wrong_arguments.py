"""What no loss can take is refused by the argument's name, and what is empty has a value."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ArgumentError, RecsysError, ShapeError
from recsys.losses import (
    bpr_loss,
    effective_sample_size,
    exact_importance_weights,
    full_logistic_loss,
    full_softmax_loss,
    gathered_scores,
    grow_sample,
    importance_log_weights,
    importance_sampling_loss,
    importance_weights,
    in_batch_softmax_loss,
    independent_chain,
    monte_carlo_loss,
    negative_sampling_loss,
    noise_contrastive_loss,
    partition_estimate,
    refined_softmax_loss,
    refined_softmax_terms,
    sampled_logistic_loss,
    sampled_softmax_loss,
    transition_matrix,
)

B, T, S, D = 3, 2, 7, 4
Loss = Callable[..., Tensor]
WITHOUT_Q = (bpr_loss, monte_carlo_loss, negative_sampling_loss)
OVER_A_SAMPLE = (
    *WITHOUT_Q,
    importance_sampling_loss,
    noise_contrastive_loss,
    refined_softmax_loss,
    sampled_logistic_loss,
    sampled_softmax_loss,
)
over_a_sample = pytest.mark.parametrize("loss", OVER_A_SAMPLE, ids=lambda loss: loss.__name__)
over_the_catalogue = pytest.mark.parametrize("loss", [full_softmax_loss, full_logistic_loss])


def make(
    batch: int = B, *, several: int | None = None, sampled: int = S, own: bool = False
) -> dict[str, Any]:
    """Make arguments; every positive is row 9, which is not in the sample."""
    rng = torch.Generator().manual_seed(0)
    positives = (batch,) if several is None else (batch, several)
    samples = (batch, sampled) if own else (sampled,)
    return {
        "query_embeddings": torch.randn(batch, D, generator=rng),
        "positive_embeddings": torch.randn(*positives, D, generator=rng),
        "sampled_embeddings": torch.randn(*samples, D, generator=rng),
        "positive_rows": torch.full(positives, 9),
        "sampled_rows": torch.randint(8, samples, generator=rng),
        "positive_log_q": torch.full(positives, -2.0),
        "sampled_log_q": torch.randn(samples, generator=rng) - 1,
        "temperature": 0.7,
    }


def compute(loss: Loss, arguments: dict[str, Any]) -> Tensor:
    left_out = ("positive_log_q", "sampled_log_q") if loss in WITHOUT_Q else ()
    taken = {name: value for name, value in arguments.items() if name not in left_out}
    return loss(**taken, **({"num_draws": 7.0} if loss is refined_softmax_loss else {}))


@over_a_sample
@pytest.mark.parametrize("several", [None, T])
@pytest.mark.parametrize("own", [False, True])
def test_no_queries_have_no_losses(loss: Loss, several: int | None, own: bool) -> None:
    arguments = make(0, several=several, own=own)
    arguments["sampled_embeddings"].requires_grad_()
    losses = compute(loss, arguments)
    losses.sum().backward()
    assert losses.shape == (0,)
    gradient = arguments["sampled_embeddings"].grad
    assert gradient is None or not gradient.any()


@over_a_sample
def test_no_positive_is_refused(loss: Loss) -> None:
    words = r"`positive_embeddings` must hold one positive a query or more, got \[3, 0, 4\]"
    with pytest.raises(ShapeError, match=words):
        compute(loss, make(several=0))


OTHER_KINDS = [
    ("positive_rows", torch.float32, "`positive_rows` must hold int64, got float32"),
    ("sampled_rows", torch.bool, "`sampled_rows` must hold int64, got bool"),
    ("sampled_rows", torch.uint8, "`sampled_rows` must hold int64, got uint8"),
    ("own_columns", torch.float32, "`own_columns` must hold int64, got float32"),
    ("sampled_mask", torch.float32, "`sampled_mask` must hold booleans, got torch.float32"),
    ("query_embeddings", torch.int64, "`query_embeddings` must hold floating-point numbers"),
    (
        "sampled_embeddings",
        torch.float64,
        "`sampled_embeddings` must be torch.float32 as `query_embeddings` are, got torch.float64",
    ),
    (
        "positive_embeddings",
        torch.float64,
        "`positive_embeddings` must be torch.float32 as `query_embeddings` are, got torch.float64",
    ),
]


@over_a_sample
@pytest.mark.parametrize(("name", "dtype", "words"), OTHER_KINDS)
@pytest.mark.parametrize("own", [False, True])
def test_numbers_of_another_kind_are_refused(
    loss: Loss, name: str, dtype: torch.dtype, words: str, own: bool
) -> None:
    arguments = make(own=own)
    arguments |= {"own_columns": torch.arange(B), "sampled_mask": torch.ones(B, S) > 0}
    arguments[name] = arguments[name].to(dtype)
    with pytest.raises(ArgumentError) as refusal:
        compute(loss, arguments)
    assert words in str(refusal.value).replace("sampled_embeddings[1]", "sampled_embeddings")


@over_a_sample
@pytest.mark.parametrize("column", [-1, S])
def test_an_own_column_that_is_none_is_refused(loss: Loss, column: int) -> None:
    arguments = make() | {"own_columns": torch.tensor([0, column, 1])}
    with pytest.raises(ArgumentError, match=rf"`own_columns` must be in \[0, 7\), got {column}"):
        compute(loss, arguments)


@over_a_sample
def test_half_precision_may_stand_beside_single(loss: Loss) -> None:
    arguments = make()
    halves = {name: arguments[name].half() for name in arguments if "embeddings" in name}
    singles = {name: half.float() for name, half in halves.items()}
    mixed = halves | {"sampled_embeddings": singles["sampled_embeddings"]}
    assert_close(compute(loss, arguments | mixed), compute(loss, arguments | singles))


def compute_full(loss: Loss, **changes: Any) -> Tensor:
    rng = torch.Generator().manual_seed(0)
    arguments: dict[str, Any] = {
        "query_embeddings": torch.randn(B, D, generator=rng),
        "catalogue_embeddings": torch.randn(10, D, generator=rng),
        "positive_rows": torch.tensor([1, 2, 3]),
        "temperature": 0.7,
    }
    return loss(**(arguments | changes))


@over_the_catalogue
@pytest.mark.parametrize("row", [-1, 10])
def test_a_positive_outside_the_catalogue_is_refused(loss: Loss, row: int) -> None:
    with pytest.raises(ArgumentError, match=rf"`positive_rows` must be in \[0, 10\), got {row}"):
        compute_full(loss, positive_rows=torch.tensor([1, row, 3]))


@over_the_catalogue
def test_padding_may_hold_any_row(loss: Loss) -> None:
    weights = torch.tensor([[1.0, 0.0]] * B)
    rows = torch.tensor([[1, -1], [2, 10], [3, 0]])
    expected = compute_full(loss)
    assert_close(compute_full(loss, positive_rows=rows, positive_weights=weights), expected)


@over_the_catalogue
def test_what_a_loss_over_the_catalogue_cannot_take(loss: Loss) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"positive_rows": torch.zeros(B)}, "`positive_rows` must hold int64, got float32"),
        ({"positive_rows": torch.zeros(B, 0).long()}, "one positive a query or more"),
        ({"catalogue_embeddings": torch.zeros(10, D).double()}, "`catalogue_embeddings` must be"),
        ({"catalogue_embeddings": torch.zeros(0, D)}, r"`positive_rows` must be in [0, 0), got 1"),
        ({"query_embeddings": torch.zeros(B, D).long()}, "must hold floating-point numbers"),
        ({"catalogue_mask": torch.ones(B, 10)}, "`catalogue_mask` must hold booleans"),
    ]
    for changes, words in wrong:
        with pytest.raises(RecsysError) as refusal:
            compute_full(loss, **changes)
        assert words in str(refusal.value)


@over_the_catalogue
@pytest.mark.parametrize("shape", [(0,), (0, T)])
def test_no_queries_have_no_losses_over_the_catalogue(loss: Loss, shape: tuple[int, ...]) -> None:
    rows = torch.zeros(shape, dtype=torch.int64)
    losses = compute_full(loss, query_embeddings=torch.zeros(0, D), positive_rows=rows)
    assert losses.shape == (0,)


def test_what_the_softmax_over_the_batch_cannot_take() -> None:
    queries, rows = torch.zeros(B, D), torch.arange(B)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"candidate_rows": rows / 2}, "`candidate_rows` must hold int64, got float32"),
        (
            {"candidate_embeddings": queries.double()},
            "`candidate_embeddings` must be torch.float32",
        ),
        ({"candidate_mask": torch.ones(B, B)}, "`candidate_mask` must hold booleans"),
        ({"num_hard_negatives": 1.5}, "`num_hard_negatives` must be a whole number, got 1.5"),
    ]
    for changes, words in wrong:
        arguments: dict[str, Any] = {
            "query_embeddings": queries,
            "candidate_embeddings": queries,
            "candidate_rows": rows,
            "candidate_log_q": None,
            "temperature": 1.0,
        }
        with pytest.raises(ArgumentError) as refusal:
            in_batch_softmax_loss(**(arguments | changes))
        assert words in str(refusal.value)


@pytest.mark.parametrize("log_share", [0.0, 1e-7, 5e-6])
def test_where_all_draws_are_the_positive_the_refined_loss_is_its_limit(log_share: float) -> None:
    arguments = make()
    arguments["positive_log_q"] = torch.tensor([-2.0, math.log(7.0) + log_share, -2.0])
    arguments["query_embeddings"].requires_grad_()
    terms = refined_softmax_terms(**arguments, num_draws=7.0)
    (terms.loss * terms.weight).sum().backward()
    assert [terms.loss[1].item(), terms.weight[1].item()] == [0, 0]
    gradient = arguments["query_embeddings"].grad
    assert torch.isfinite(gradient).all()
    assert not gradient[1].any()
    assert gradient[[0, 2]].any(dim=1).all()
    others = compute(refined_softmax_loss, make())[[0, 2]]
    assert_close((terms.loss * terms.weight)[[0, 2]], others)


def test_an_endless_sample_is_refused() -> None:
    with pytest.raises(ArgumentError, match="`num_draws` must be finite, got inf"):
        refined_softmax_loss(**make(), num_draws=math.inf)


@pytest.mark.parametrize(
    "of_weights",
    [
        effective_sample_size,
        partition_estimate,
        importance_weights,
        lambda weights: exact_importance_weights(weights, torch.zeros(2)),
        lambda weights: independent_chain(weights, torch.rand(2, 2)),
        lambda weights: grow_sample([weights], min_ess=1, max_samples=9),
    ],
)
def test_log_weights_are_floating_point(of_weights: Callable[[Tensor], Any]) -> None:
    of_weights(torch.zeros(2, 3))
    with pytest.raises(ArgumentError, match="`log_weights` must hold floating-point numbers"):
        of_weights(torch.zeros(2, 3, dtype=torch.int64))


def test_one_number_is_no_sample() -> None:
    for of_weights in (effective_sample_size, partition_estimate):
        with pytest.raises(ShapeError, match="`log_weights` must have shape"):
            of_weights(torch.tensor(1.0))


def test_of_an_empty_sample_nothing_is_known() -> None:
    estimate = partition_estimate(torch.zeros(2, 0))
    assert estimate.log_z.tolist() == [-math.inf] * 2
    assert estimate.standard_error.tolist() == [math.inf] * 2


def test_no_queries_need_no_more_than_one_block() -> None:
    grown = grow_sample((torch.zeros(0, 4) for _ in range(3)), min_ess=3, max_samples=12)
    assert (grown.num_samples, grown.ess.shape, grown.reached.shape) == (4, (0,), (0,))


def test_a_chain_begins_somewhere() -> None:
    with pytest.raises(
        ShapeError, match=r"must hold an initial state in column 0, got shape \[2, 0"
    ):
        independent_chain(torch.zeros(2, 0), torch.zeros(2, 0))


def test_what_is_never_proposed_is_refused() -> None:
    with pytest.raises(ArgumentError, match="`log_proposal` must hold chances above 0, got 0"):
        transition_matrix(torch.zeros(2), torch.tensor([0.0, -math.inf]))


def test_vectors_and_places_of_another_kind_are_refused() -> None:
    queries, places = torch.zeros(B, D), torch.zeros(B, S)
    with pytest.raises(ArgumentError, match="`places` must hold int64, got float32"):
        gathered_scores(queries, queries, places)
    words = r"`candidate_embeddings` must be torch\.float32"
    with pytest.raises(ArgumentError, match=words):
        gathered_scores(queries, queries.double(), places.long())
    with pytest.raises(ArgumentError, match=words):
        importance_log_weights(queries, queries.double(), log_q=torch.zeros(B), temperature=1.0)
