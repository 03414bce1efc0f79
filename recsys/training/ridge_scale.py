"""What the scores of a ridge part are multiplied by, by validation.

Dimensions: B queries of a block, U queries, M interests of a query, T width of the towers' part.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recsys.data import PreparedDataset
from recsys.evaluation import Embed, EvaluationQueries, RankedCandidates, quick_metrics
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
    k: int,
    dataset: PreparedDataset,
    ranked: RankedCandidates,
) -> float:
    """Choose the scale with which both parts together have the highest recall@k.

    The queries are embedded once, and searched for once for each scale.

    Args:
        scales: At least one.
        queries: At least one; in the order of their user rows.
        embed: Gives the vectors of a block of queries, of scale 1.
        exact: Exact search over candidates of scale 1.
        dim: T.
        k: List length.
        dataset: Says whether items of a user's history are left out.
        ranked: What is ranked.

    Returns:
        The best scale, the first of equal ones.
    """
    vectors = embed(queries)

    def embedded(block: EvaluationQueries) -> NDArray[np.float32]:
        found: NDArray[np.float32] = vectors[np.searchsorted(queries.user_rows, block.user_rows)]
        return found

    recalls = [
        quick_metrics(
            queries,
            embed=scale_behind(embedded, dim, scale),
            exact=exact,
            ks=[k],
            exclude_seen=dataset.exclude_seen,
            ranked=ranked,
        ).get(f"recall_at_{k}", 0.0)  # none: nobody chose what is ranked
        for scale in scales
    ]
    return scales[recalls.index(max(recalls))]
