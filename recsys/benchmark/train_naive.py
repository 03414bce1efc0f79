"""A training as it is written first: rows one by one, padded histories, all logits, dense Adam.

Dimensions: B rows in a batch, L items in a history, S sampled candidates, N items, D width.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from recsys.data import Events


@dataclass(frozen=True, kw_only=True)
class NaiveSettings:
    """What the model has in common with the one that it is compared with.

    Attributes:
        dim: D.
        length: L.
        decay: Weight of an item against the next newer one.
        exponent: The sum is divided by (sum of weights) ** exponent.
        dropout: Share of the items of a history that training takes out.
        batch_size: B.
        num_sampled: S, shared by the batch, with replacement.
        alpha: Candidates are drawn by count ** alpha.
        learning_rate: Of Adam.
    """

    dim: int
    length: int
    decay: float
    exponent: float
    dropout: float
    batch_size: int
    num_sampled: int
    alpha: float
    learning_rate: float = 0.005


class HistoryRows(Dataset[tuple[Tensor, int]]):
    """Each event with the items before it, newest first, padded by `num_items`.

    Args:
        events: Sorted by user, then by time.
        length: L.
        num_items: N.
    """

    def __init__(self, events: Events, length: int, num_items: int) -> None:
        self._items, self._length, self._padding = np.asarray(events.items), length, num_items
        self._starts = np.searchsorted(events.users, events.users)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        """Give a history [L], int64, and the item that followed it."""
        history = torch.full((self._length,), self._padding)
        items = self._items[max(self._starts[row], row - self._length) : row][::-1]
        history[: len(items)] = torch.from_numpy(items.astype(np.int64))
        return history, int(self._items[row])


class NaiveTraining:
    """The pooled history tower and the sampled softmax; each call takes some steps.

    Args:
        events: The training part.
        item_counts: [N].
        settings: Of model and loss.
    """

    def __init__(
        self, events: Events, item_counts: NDArray[np.int64], settings: NaiveSettings
    ) -> None:
        self._settings, num_items = settings, len(item_counts)
        self.histories = nn.Embedding(num_items + 1, settings.dim, padding_idx=num_items)
        self.items = nn.Embedding(num_items, settings.dim)
        for table in (self.histories, self.items):
            nn.init.normal_(table.weight, std=0.05)
        params = [*self.histories.parameters(), *self.items.parameters()]
        self._optimizer = torch.optim.Adam(params, lr=settings.learning_rate)
        chances = torch.tensor(item_counts, dtype=torch.float64) ** settings.alpha
        self._chances = chances / chances.sum()
        self._log_q = (self._chances * settings.num_sampled).log().float()
        rows = HistoryRows(events, settings.length, num_items)
        loader = DataLoader(rows, batch_size=settings.batch_size, shuffle=True)
        self._batches: Iterator[tuple[Tensor, Tensor]] = itertools.chain.from_iterable(
            itertools.repeat(loader)
        )

    def __call__(self, steps: int) -> None:
        """Take steps, epoch after epoch."""
        for histories, positives in itertools.islice(self._batches, steps):
            size = self._settings.num_sampled
            sampled = torch.multinomial(self._chances, size, replacement=True)
            self._optimizer.zero_grad()
            torch.autograd.backward(self.loss(histories, positives, sampled))
            self._optimizer.step()

    def loss(self, histories: Tensor, positives: Tensor, sampled: Tensor) -> Tensor:
        """Compute the mean loss of a batch: [B, L], [B] and [S], int64, to a scalar."""
        queries = self._pool(histories)  # [B, D]
        positive = (queries * self.items(positives)).sum(dim=1) - self._log_q[positives]
        logits = queries @ self.items(sampled).T - self._log_q[sampled]  # [B, S]
        logits = logits.masked_fill(positives[:, None] == sampled, float("-inf"))
        logits = torch.cat([positive[:, None], logits], dim=1)
        targets = torch.zeros(len(logits), dtype=torch.long)
        return functional.cross_entropy(logits, targets)

    def _pool(self, histories: Tensor) -> Tensor:
        settings, known = self._settings, histories != self.histories.padding_idx
        weights = settings.decay ** torch.arange(histories.shape[1]) * known  # [B, L]
        totals = weights.sum(dim=1, keepdim=True).clamp(min=1.0)
        kept = functional.dropout(weights, settings.dropout)
        vectors = self.histories(histories)  # [B, L, D]
        pooled: Tensor = (vectors * kept[:, :, None]).sum(dim=1) / totals**settings.exponent
        return pooled
