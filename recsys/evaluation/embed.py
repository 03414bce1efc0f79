"""From evaluation queries to query vectors."""

import numpy as np
from numpy.typing import NDArray

from recsys.evaluation.queries import EvaluationQueries
from recsys.models import QueryInputs, TwoTower, encode_queries, pad_histories


def embed_queries(model: TwoTower, queries: EvaluationQueries) -> NDArray[np.float32]:
    """Embed U queries with the user tower: [U, E], float32; the same however they are batched."""
    inputs = QueryInputs(
        queries.user_rows,
        pad_histories(queries.histories, model.history_length),
        queries.features,
        queries.context,
    )
    return encode_queries(model, inputs)
