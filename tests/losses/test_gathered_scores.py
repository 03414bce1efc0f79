"""Scores of each query's own candidates against a plain gather, forward and backward."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recsys.foundations import ShapeError
from recsys.losses import gathered_scores


def make_inputs(
    *, batch: int, num_own: int, num_candidates: int = 6, dim: int = 3, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    queries = torch.randn(batch, dim, generator=rng, dtype=torch.float64)
    candidates = torch.randn(num_candidates, dim, generator=rng, dtype=torch.float64)
    places = torch.randint(num_candidates, (batch, num_own), generator=rng)
    return queries.requires_grad_(), candidates.requires_grad_(), places


def plain(queries: Tensor, candidates: Tensor, places: Tensor) -> Tensor:
    return (candidates[places] * queries[:, None]).sum(dim=2)


@given(
    batch=st.integers(0, 7),
    num_own=st.integers(0, 12),
    num_candidates=st.integers(1, 6),
    seed=st.integers(0, 2**16),
)
def test_equals_a_plain_gather_with_its_gradients(
    batch: int, num_own: int, num_candidates: int, seed: int
) -> None:
    inputs = make_inputs(batch=batch, num_own=num_own, num_candidates=num_candidates, seed=seed)
    scores, expected = gathered_scores(*inputs), plain(*inputs)
    assert_close(scores, expected)
    slopes = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1)).double()
    leaves = list(inputs[:2])
    for found, wanted in zip(
        torch.autograd.grad(scores, leaves, slopes),
        torch.autograd.grad(expected, leaves, slopes),
        strict=True,
    ):
        assert_close(found, wanted)


def test_equals_it_where_a_row_alone_fills_the_cache() -> None:
    inputs = make_inputs(batch=5, num_own=4000, num_candidates=50, dim=80)
    queries, candidates, places = inputs[0].float(), inputs[1].float(), inputs[2]
    assert_close(gathered_scores(queries, candidates, places), plain(queries, candidates, places))


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("query_embeddings", ((3,), (6, 4), (3, 2))),
        ("candidate_embeddings", ((3, 4), (6, 5), (3, 2))),
        ("places", ((3, 4), (6, 4), (2, 2))),
        ("places", ((3, 4), (6, 4), (3,))),
    ],
)
def test_names_the_argument_whose_shape_is_wrong(
    name: str, shapes: tuple[tuple[int, ...], ...]
) -> None:
    queries, candidates, places = (torch.zeros(shape) for shape in shapes)
    with pytest.raises(ShapeError, match=f"`{name}` must have shape"):
        gathered_scores(queries, candidates, places.long())
