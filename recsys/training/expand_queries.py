"""A query of its own for each positive, for losses that compare them row by row.

Dimensions: Q queries, P positives, E output width of the towers.
"""

import torch
from torch import Tensor

from recsys.data import TrainingBatch


def expand_queries(query_embeddings: Tensor, batch: TrainingBatch) -> tuple[Tensor, TrainingBatch]:
    """Repeat each query for each of its positives.

    Args:
        query_embeddings: [Q, E].
        batch: Q queries.

    Returns:
        [P, E], and the batch with P queries; both as they are where Q = P already.
    """
    if batch.query_rows is None:
        return query_embeddings, batch
    rows = torch.from_numpy(batch.query_rows).to(query_embeddings.device)
    return query_embeddings.index_select(0, rows), batch.by_positive()
