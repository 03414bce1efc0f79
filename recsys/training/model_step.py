"""One forward step: from a batch of positives to the loss of each row."""

import numpy as np
import torch
from torch import Tensor

from recsys.data import FeatureTable, TrainingBatch
from recsys.models import QueryInputs, TwoTower
from recsys.training.objective import Objective


class ModelStep:
    """The model, what it minimises, and the random stream of the draws.

    Args:
        model: The two towers.
        objective: What is minimised.
        user_features: A row for each user.
        generator: Source of the objective's draws, on the CPU.
    """

    def __init__(
        self,
        model: TwoTower,
        objective: Objective,
        user_features: FeatureTable,
        generator: torch.Generator,
    ) -> None:
        self.model, self.objective, self.generator = model, objective, generator
        self._user_features = user_features

    def __call__(self, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        """Compute the losses [B], in nats, and the rows' weights [B]."""
        queries = self.model.embed_queries(
            QueryInputs(
                batch.users,
                batch.histories,
                self._user_features.take(batch.users),
                batch.context,
            )
        )
        losses = self.objective.losses(self.model, queries, batch, self.generator)
        weights = batch.weights
        if weights is None:
            weights = np.ones(len(batch.positives), np.float32)
        return losses, torch.from_numpy(weights).to(losses.device)
