"""Scores of each query for candidates of its own, without a copy of their vectors.

Dimensions: B queries, S candidates a query, K different candidates in all, D embedding width.
"""

from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from recsys.foundations import check_integers, check_shape
from recsys.losses.softmax_core import check_vectors

# Numbers of vectors gathered at once: what stays in a core's cache, and what a device does well.
_MOST_GATHERED, _MOST_ELSEWHERE = {"cpu": 2**18}, 2**26


def gathered_scores(
    query_embeddings: Tensor, candidate_embeddings: Tensor, places: Tensor
) -> Tensor:
    """Compute ``<query_b, candidate[places[b, s]]>`` for all b and s.

    Gathering all candidates first takes [B, S, D], and their gradients as much again. Here the
    forward pass gathers a few rows at a time, and the backward pass sums over bags: nothing larger
    than [B, S] and [K, D] exists as a whole.

    Args:
        query_embeddings: [B, D], float32 or wider.
        candidate_embeddings: [K, D], same dtype.
        places: [B, S], int64, in [0, K); repeats are allowed.

    Returns:
        [B, S], same dtype.

    Raises:
        ShapeError: Two arguments disagree in B or D.
        ArgumentError: An argument holds numbers of another kind.
    """
    check_shape("query_embeddings", query_embeddings, None, None)
    batch, width = query_embeddings.shape
    check_shape("candidate_embeddings", candidate_embeddings, None, width)
    check_shape("places", places, batch, None)
    check_integers("places", places)
    check_vectors(query_embeddings, candidate_embeddings=candidate_embeddings)
    scores = _GatheredScores.apply(  # type: ignore[no-untyped-call]
        query_embeddings, candidate_embeddings, places
    )
    return cast(Tensor, scores)


class _GatheredScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, candidates: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(queries, candidates, places)
        scores = queries.new_empty(places.shape)
        for rows in _blocks(places, candidates):
            own = candidates.index_select(0, places[rows].flatten())
            own = own.reshape(*places[rows].shape, candidates.shape[1])  # [b, S, D]
            # A row from the left: from the right it would be read as a column, three times slower.
            scores[rows] = torch.bmm(queries[rows, None], own.mT).squeeze(1)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        queries, candidates, places = ctx.saved_tensors
        batch, width = places.shape
        of_queries = functional.embedding_bag(
            places.flatten(),
            candidates,
            torch.arange(batch, device=places.device) * width,
            mode="sum",
            per_sample_weights=gradient.flatten(),
        )  # [B, D]
        sorted_places, order = places.flatten().sort(stable=True)
        touched, counts = sorted_places.unique_consecutive(return_counts=True)
        of_touched = functional.embedding_bag(
            order // max(width, 1),
            queries.contiguous(),
            counts.cumsum(dim=0) - counts,
            mode="sum",
            per_sample_weights=gradient.flatten()[order],
        )  # [touched, D]
        of_candidates = torch.zeros_like(candidates).index_copy_(0, touched, of_touched)
        return of_queries, of_candidates, None


def _blocks(places: Tensor, candidates: Tensor) -> Iterator[slice]:
    """Go through the rows of [B, S] in blocks whose vectors, gathered, are few enough."""
    most = _MOST_GATHERED.get(places.device.type, _MOST_ELSEWHERE)
    size = max(1, most // max(1, places.shape[1] * candidates.shape[1]))
    for start in range(0, len(places), size):
        yield slice(start, start + size)
