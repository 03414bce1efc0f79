"""Which of a query's interests each positive trains.

Dimensions: Q queries with M interests, P positives, n interests that are chosen, E output width of
the towers.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.data import FeatureTable, TrainingBatch
from recsys.models import TwoTower


def route_to_interests(
    model: TwoTower, item_features: FeatureTable, query_embeddings: Tensor, batch: TrainingBatch
) -> tuple[Tensor, TrainingBatch]:
    """Give each positive the interest of its query that scores it highest.

    The choice has no gradient, and knows the positive by its vector without dropout. Positives of
    one query with the same interest share it as their query, so that what a loss computes once a
    query is computed at most M times for each of the Q, and never for an interest that none chose.

    Args:
        model: Whose item tower embeds the positives; is left in the mode it was in.
        item_features: A row for each item.
        query_embeddings: [Q, M, E].
        batch: Q queries and P positives.

    Returns:
        The interests that were chosen, each once, [n, E], with their gradient; and the batch with
        them as its n queries. Where each query has one positive, n = P, in the same order.

    Source:
        "Controllable multi-interest framework for recommendation", KDD 2020. Differs: the
        positive's vector is that without dropout.
    """
    num_positives, num_interests = len(batch.positives), query_embeddings.shape[1]
    of_positives = np.arange(num_positives) if batch.query_rows is None else batch.query_rows
    owners = torch.from_numpy(of_positives).to(query_embeddings.device)
    items = _embed_without_training(model, item_features, batch.positives).to(query_embeddings)
    with torch.no_grad():
        interests = query_embeddings.index_select(0, owners)  # [P, M, E]
        chosen = torch.bmm(interests, items[:, :, None]).squeeze(2).argmax(dim=1)  # [P]
    flat, places = query_embeddings.flatten(0, 1), owners * num_interests + chosen
    if batch.query_rows is None:
        return flat.index_select(0, places), batch
    different, rows = places.unique(return_inverse=True)
    queries = (different // num_interests).cpu().numpy()
    return flat.index_select(0, different), batch.with_queries(queries, rows.cpu().numpy())


@torch.no_grad()
def _embed_without_training(
    model: TwoTower, item_features: FeatureTable, rows: NDArray[np.int64]
) -> Tensor:
    """Embed items, each different one once: [P, E]."""
    different, places = np.unique(rows, return_inverse=True)
    tower = model.item_tower
    was_training = tower.training
    tower.eval()
    try:
        embeddings = model.embed_candidates(different, item_features.take(different))
    finally:
        tower.train(was_training)
    return embeddings.index_select(0, torch.from_numpy(places).to(embeddings.device))
