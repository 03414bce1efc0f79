"""A model that learns batch by batch, without the loop around it."""

import math

import torch
from torch.optim import Optimizer

from recsys.data import TrainingBatch
from recsys.models import TwoTower
from recsys.training.gradient_clipping import clip_gradients
from recsys.training.model_step import ModelStep
from recsys.training.schedules import Schedule, set_learning_rates


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
        loss = (losses * weights).sum() / weights.sum()
        value = float(loss.detach())
        if not math.isfinite(value):
            return value
        torch.autograd.backward(loss)
        if self._clip > 0:
            clip_gradients(self.model.parameters(), self._clip)
        set_learning_rates(self._optimizers, self._schedule(self._steps))
        for optimizer in self._optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self._steps += 1
        return value
