"""One forward step: from a batch of positives to the loss of each.

Dimensions: P positives.
"""

import torch
from torch import Tensor

from recsys.data import FeatureTable, TrainingBatch
from recsys.foundations import ArgumentError
from recsys.models import QueryInputs, TwoTower
from recsys.training.interests import route_to_interests
from recsys.training.objective import Objective


class ModelStep:
    """The model, what it minimises, and the random stream of the draws.

    Args:
        model: The two towers.
        objective: What is minimised.
        user_features: A row for each user.
        generator: Source of the objective's draws, on the CPU.
        item_features: A row for each item, for a model whose queries have several interests. None:
            they have one.
    """

    def __init__(
        self,
        model: TwoTower,
        objective: Objective,
        user_features: FeatureTable,
        generator: torch.Generator,
        item_features: FeatureTable | None = None,
    ) -> None:
        self.model, self.objective, self.generator = model, objective, generator
        self._user_features, self._item_features = user_features, item_features

    def __call__(self, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        """Compute the losses [P], in nats, and the positives' weights [P]."""
        queries = self.model.embed_queries(
            QueryInputs(
                batch.users,
                batch.histories,
                self._user_features.take(batch.users),
                batch.context,
                batch.times,
                batch.places,
            )
        )
        if queries.dim() == 3:
            queries, batch = self._route(queries, batch)
        losses = self.objective.losses(self.model, queries, batch, self.generator)
        if batch.weights is None:
            return losses, losses.new_ones(len(batch.positives))
        return losses, torch.from_numpy(batch.weights).to(losses.device)

    def _route(self, queries: Tensor, batch: TrainingBatch) -> tuple[Tensor, TrainingBatch]:
        if self._item_features is None:
            raise ArgumentError("`item_features` must be given for a model of several interests.")
        return route_to_interests(self.model, self._item_features, queries, batch)
