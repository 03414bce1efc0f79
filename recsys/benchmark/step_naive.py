"""A training step as it is written first: plain embeddings, all logits at once, dense Adam."""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from recsys.benchmark.step_inputs import StepInputs, StepSize


class NaiveStep:
    """The same model and the same loss; each call is a step.

    Args:
        size: Of tables, batch and sample.
        hidden: Width of the hidden layer of both towers.
        inputs: Batches with their draws, taken in turn.
    """

    def __init__(self, size: StepSize, hidden: int, inputs: Sequence[StepInputs]) -> None:
        self.users = _make_tower(size.num_users, size.dim, hidden)
        self.items = _make_tower(size.num_items, size.dim, hidden)
        params = [*self.users.parameters(), *self.items.parameters()]
        self._optimizer = torch.optim.Adam(params, lr=0.005)
        self._inputs = itertools.cycle(inputs)

    def __call__(self) -> None:
        """Take a step."""
        self._optimizer.zero_grad()
        torch.autograd.backward(self.loss(next(self._inputs)))
        self._optimizer.step()

    def loss(self, batch: StepInputs) -> Tensor:
        """Compute the mean sampled softmax loss of a batch."""
        queries = self.users(batch.users)  # [B, D]
        positive = (queries * self.items(batch.positives)).sum(dim=1) - batch.positive_log_q
        sampled = queries @ self.items(batch.sampled).T - batch.sampled_log_q  # [B, S]
        hits = batch.positives[:, None] == batch.sampled
        logits = torch.cat([positive[:, None], sampled.masked_fill(hits, float("-inf"))], dim=1)
        return functional.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))


def _make_tower(num_rows: int, dim: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Embedding(num_rows, dim), nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, dim)
    )
