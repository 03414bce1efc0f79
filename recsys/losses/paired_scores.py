"""Scores of pairs of a query and a candidate, many pairs of few of each.

Dimensions: B queries, K candidates, P pairs, D embedding width.
"""

from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

_MOST_GATHERED = 2**18  # numbers of vectors gathered at once: what stays in a core's cache


def paired_scores(
    query_embeddings: Tensor, candidate_embeddings: Tensor, query_rows: Tensor, rows: Tensor
) -> Tensor:
    """Compute ``<query[query_rows[p]], candidate[rows[p]]>`` for each pair p.

    The gradients are sums over bags, so that nothing of size [P, D] exists as a whole.

    Args:
        query_embeddings: [B, D], float32 or wider.
        candidate_embeddings: [K, D], same dtype.
        query_rows: [P], int64, in [0, B).
        rows: [P], int64, in [0, K).

    Returns:
        [P], same dtype.
    """
    scores = _PairedScores.apply(  # type: ignore[no-untyped-call]
        query_embeddings, candidate_embeddings, query_rows, rows
    )
    return cast(Tensor, scores)


class _PairedScores(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, candidates: Tensor, query_rows: Tensor, rows: Tensor
    ) -> Tensor:
        ctx.save_for_backward(queries, candidates, query_rows, rows)
        scores = queries.new_empty(len(rows))
        size = max(1, _MOST_GATHERED // max(1, queries.shape[1]))
        for start in range(0, len(rows), size):
            some = slice(start, start + size)
            left = queries.index_select(0, query_rows[some])  # [p, D]
            right = candidates.index_select(0, rows[some])
            scores[some] = torch.einsum("pd,pd->p", left, right)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        queries, candidates, query_rows, rows = ctx.saved_tensors
        of_queries = _sum_at(query_rows, len(queries), candidates, rows, gradient)
        of_candidates = _sum_at(rows, len(candidates), queries, query_rows, gradient)
        return of_queries, of_candidates, None, None


def _sum_at(places: Tensor, size: int, vectors: Tensor, rows: Tensor, weights: Tensor) -> Tensor:
    """Add ``weights[p] * vectors[rows[p]]`` up at ``places[p]``: [size, D]."""
    sorted_places, order = places.sort(stable=True)
    counts = torch.bincount(sorted_places, minlength=size)
    return functional.embedding_bag(
        rows[order],
        vectors.contiguous(),
        counts.cumsum(dim=0) - counts,
        mode="sum",
        per_sample_weights=weights[order],
    )
