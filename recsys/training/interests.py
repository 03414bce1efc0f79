"""Which of a query's interests each positive trains.

Dimensions: Q queries with M interests, P positives, E output width of the towers.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.data import FeatureTable
from recsys.models import TwoTower


def route_to_interests(
    model: TwoTower,
    item_features: FeatureTable,
    query_embeddings: Tensor,
    positives: NDArray[np.int64],
    query_rows: NDArray[np.int64] | None,
) -> Tensor:
    """Give each positive the interest of its query that scores it highest.

    The choice has no gradient, and knows the positive by its vector without dropout.

    Args:
        model: Whose item tower embeds the positives; is left in the mode it was in.
        item_features: A row for each item.
        query_embeddings: [Q, M, E].
        positives: [P], int64, rows of items.
        query_rows: [P], int64, in [0, Q), the query that chose each positive. None: query p chose
            positive p.

    Returns:
        [P, E], with the gradient of the interests that were chosen.

    Source:
        "Controllable multi-interest framework for recommendation", KDD 2020. Differs: the
        positive's vector is that without dropout.
    """
    owners = torch.arange(len(positives)) if query_rows is None else torch.from_numpy(query_rows)
    owners = owners.to(query_embeddings.device)
    items = _embed_without_training(model, item_features, positives).to(query_embeddings)  # [P, E]
    with torch.no_grad():
        interests = query_embeddings.index_select(0, owners)  # [P, M, E]
        chosen = torch.bmm(interests, items[:, :, None]).squeeze(2).argmax(dim=1)  # [P]
    num_interests = query_embeddings.shape[1]
    return query_embeddings.flatten(0, 1).index_select(0, owners * num_interests + chosen)


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
