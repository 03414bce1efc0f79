"""From evaluation queries to query vectors.

Dimensions: U queries, M interests of a query, L items that the model looks at, E output width.
"""

import numpy as np
from numpy.typing import NDArray

from recsys.data import NO_TIME
from recsys.evaluation.queries import EvaluationQueries
from recsys.models import QueryInputs, TwoTower, encode_queries, inference, pad_histories

_QUERIES_AT_ONCE = 512  # histories are padded to L for no more: L may be in the thousands


def embed_queries(model: TwoTower, queries: EvaluationQueries) -> NDArray[np.float32]:
    """Embed U queries with the user tower; the same however they are batched.

    Args:
        model: Is left in the mode it was in.
        queries: Times of their histories are read where the model uses them.

    Returns:
        [U, E], float32; of a model with M > 1 interests [U, M, E].
    """
    starts = range(0, max(len(queries), 1), _QUERIES_AT_ONCE)
    blocks = [queries.slice(start, start + _QUERIES_AT_ONCE) for start in starts]
    with inference(model):  # once for all blocks: what a model keeps for search is made once
        return np.concatenate([encode_queries(model, _inputs(model, block)) for block in blocks])


def _inputs(model: TwoTower, queries: EvaluationQueries) -> QueryInputs:
    """Pad what is known of queries, newest first, to L items."""
    histories, times = pad_histories(queries.histories, model.history_length), None
    histories[histories >= model.num_history_items] = -1  # added since the training
    if model.uses_times and queries.history_times is not None:
        times = pad_histories(queries.history_times, model.history_length)
        times[histories < 0] = NO_TIME
    return QueryInputs(queries.user_rows, histories, queries.features, queries.context, times)
