"""Recall on the validation part, between epochs: exact search over the whole catalogue."""

from functools import partial

import numpy as np

from recsys.data import PreparedDataset
from recsys.evaluation import build_queries, embed_queries, quick_metrics
from recsys.foundations import make_numpy_generator
from recsys.index import ExactIndex
from recsys.models import TwoTower, encode_candidates


class Validator:
    """Recall@k of a model on the validation part.

    Args:
        dataset: Its validation part may be empty; then there is no recall.
        k: List length.
        max_users: At most so many users, drawn by seed; None: all.
        seed: Of that draw.
    """

    def __init__(
        self, dataset: PreparedDataset, *, k: int, max_users: int | None, seed: int
    ) -> None:
        self.k, self._dataset = k, dataset
        queries = build_queries(dataset, "validation")
        if max_users is not None and max_users < len(queries):
            chosen = make_numpy_generator(seed, "validation").permutation(len(queries))[:max_users]
            queries = queries.take(np.sort(chosen))
        self._queries = queries

    def recall(self, model: TwoTower) -> float | None:
        """Give the mean recall@k over users with a validation event; None if there are none."""
        if len(self._queries) == 0:
            return None
        dataset = self._dataset
        metrics = quick_metrics(
            self._queries,
            embed=partial(embed_queries, model),
            exact=ExactIndex(encode_candidates(model, dataset.items.features, dataset.num_items)),
            ks=[self.k],
            exclude_seen=dataset.exclude_seen,
        )
        return metrics[f"recall_at_{self.k}"]
