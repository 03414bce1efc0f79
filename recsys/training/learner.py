"""A model that learns batch by batch, without the loop around it."""

import sys

import torch
from torch.optim import Optimizer

from recsys.data import TrainingBatch
from recsys.models import TwoTower
from recsys.training.model_step import ModelStep
from recsys.training.schedules import Schedule
from recsys.training.update import update


class Learner:
    """A model with its objective and optimisers; each call of `learn` is one step.

    Args:
        step: The model, its objective and the random stream of the draws.
        optimizers: Over all of the model's parameters.
        schedule: Share of the learning rate at each step.
        gradient_clip: Largest norm over all gradients; 0: none.
    """

    def __init__(
        self,
        step: ModelStep,
        optimizers: list[Optimizer],
        schedule: Schedule,
        *,
        gradient_clip: float,
    ) -> None:
        self._step, self._optimizers = step, optimizers
        self._schedule, self._clip = schedule, gradient_clip
        self._steps = 0

    @property
    def model(self) -> TwoTower:
        """Give the model."""
        return self._step.model

    def start_epoch(self) -> None:
        """Begin the epoch's statistics anew."""
        self._step.objective.start_epoch()

    def statistics(self) -> dict[str, float]:
        """Give what the epoch's draws were like so far, by name; empty if there are none."""
        return self._step.objective.statistics()

    def learn(self, batch: TrainingBatch) -> float:
        """Take one step; give the weighted mean of the losses, in nats.

        Nothing is updated where that is not finite.
        """
        losses, weights = self._step(batch)
        total, weight_sum = (losses * weights).sum(), weights.sum()
        if torch.isfinite(total):
            update(
                self.model,
                self._optimizers,
                total,
                weight_sum,
                rate_share=self._schedule(self._steps),
                gradient_clip=self._clip,
            )
            self._steps += 1
        return float(total.detach()) / max(float(weight_sum), sys.float_info.min)
