"""What the scores of a ridge part are multiplied by, by validation.

Dimensions: B queries of a block, M interests of a query, T width of the towers' part, E
output width.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recsys.evaluation import (
    Embed,
    EvaluationQueries,
    RankedCandidates,
    choice_ndcg,
    rank_by_vectors,
)
from recsys.index import Index


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
    exact: Index,
    dim: int,
    exclude_seen: bool,
    ranked: RankedCandidates,
) -> float:
    """Choose the scale with which both parts together have the highest mean NDCG@100.

    The queries are searched for once for each scale.

    Args:
        scales: At least one.
        queries: Who chooses.
        embed: Gives the vectors of a block of queries, of scale 1; is asked anew for each scale.
        exact: Exact search over candidates of scale 1.
        dim: T.
        exclude_seen: Whether items of a user's history are left out.
        ranked: What is ranked.

    Returns:
        The best scale, the first of equal ones.
    """
    values = [
        choice_ndcg(
            queries,
            rank_by_vectors(scale_behind(embed, dim, scale), exact, ranked),
            exclude_seen=exclude_seen,
            ranked=ranked,
        )
        for scale in scales
    ]
    return scales[values.index(max(values))]
