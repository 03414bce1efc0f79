"""What the scores of a ridge part are multiplied by, by validation.

Dimensions: B queries of a block, M interests of a query, N candidates, T width of the towers' part,
E output width.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.evaluation import Embed, EvaluationQueries
from recsys.training.score_blocks import ndcg_of_scores, score_blocks


def scale_behind(embed: Embed, dim: int, scale: float) -> Embed:
    """Multiply the numbers of query vectors behind the first T by the scale."""

    def scaled(block: EvaluationQueries) -> NDArray[np.float32]:
        vectors = embed(block)  # [B, E] or [B, M, E]
        return np.concatenate([vectors[..., :dim], scale * vectors[..., dim:]], axis=-1)

    return scaled


def choose_ridge_scale(
    scales: Sequence[float],
    queries: EvaluationQueries,
    *,
    embed: Embed,
    vectors: NDArray[np.float32],
    dim: int,
    exclude_seen: bool,
) -> float:
    """Choose the scale with which both parts together have the highest mean NDCG@100.

    The catalogue is ranked whole, and each part scores it but once.

    Args:
        scales: At least one.
        queries: Who chooses.
        embed: Gives the vectors of a block of queries, of scale 1. Those of several interests
            differ in the towers' part alone.
        vectors: [N, E], those of the candidates, of scale 1.
        dim: T.
        exclude_seen: Whether items of a user's history are left out.

    Returns:
        The best scale, the first of equal ones.
    """
    items, totals = torch.from_numpy(vectors), np.zeros(len(scales))
    for block in score_blocks(queries, len(vectors)):
        towers, ridge = _scores(torch.from_numpy(embed(block)), items, dim)
        for place, scale in enumerate(scales):
            scores = torch.add(towers, ridge, alpha=scale)
            totals[place] += ndcg_of_scores(scores, block, exclude_seen=exclude_seen).sum()
    return scales[int(totals.argmax())]


def _scores(queries: Tensor, items: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Score the catalogue by either part: [B, N] twice."""
    if queries.dim() == 2:
        queries = queries[:, None]
    towers = queries[:, 0, :dim] @ items[:, :dim].T
    for interest in range(1, queries.shape[1]):
        towers = torch.maximum(towers, queries[:, interest, :dim] @ items[:, :dim].T)
    return towers, queries[:, 0, dim:] @ items[:, dim:].T
