"""A training step by tensor operations alone: what the toolkit's step is measured against.

No modules, no autograd, no optimiser, no checks: the matrix products of loss and towers, the passes
of the softmax over its blocks, and for each table one `unique`, one gather and one row-wise update.

Dimensions: B users, S sampled candidates, R distinct items of both, D width, H hidden width.
"""

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from recsys.benchmark.step_inputs import StepInputs, StepSize
from recsys.foundations import linear, make_generator

_ROWS_OF_BLOCK = 256
_TABLE_RATE, _LAYER_RATE, _EPS = 0.05, 0.005, 1e-8


class FloorStep:
    """A sampled softmax over ids, with a hidden layer on both sides; each call is a step.

    Args:
        size: Of tables, batch and sample.
        hidden: H, of both towers.
        inputs: Batches with their draws, taken in turn.
        seed: Of the first values.
    """

    def __init__(
        self, size: StepSize, hidden: int, inputs: Sequence[StepInputs], *, seed: int
    ) -> None:
        generator = make_generator(seed, "benchmark", "floor")
        self.users = FloorTable(size.num_users, size.dim, generator)
        self.items = FloorTable(size.num_items, size.dim, generator)
        self.user_tower = FloorTower(size.dim, hidden, generator)
        self.item_tower = FloorTower(size.dim, hidden, generator)
        self._inputs = itertools.cycle(inputs)

    @torch.no_grad()
    def __call__(self) -> None:
        """Take a step."""
        batch = next(self._inputs)
        both = torch.cat([batch.positives, batch.sampled])
        users, user_places = torch.unique(batch.users, return_inverse=True)
        items, item_places = torch.unique(both, return_inverse=True)  # [R]

        queries = self.user_tower.forward(self.users.values.index_select(0, batch.users))
        vectors = self.item_tower.forward(self.items.values.index_select(0, items))
        candidates = vectors.index_select(0, item_places)  # [B + S, D]
        of_queries, of_candidates = softmax_gradients(
            queries, candidates[: len(queries)], candidates[len(queries) :], batch
        )
        of_users = self.user_tower.backward(of_queries)
        of_items = self.item_tower.backward(_add_up(of_candidates, item_places, len(items)))
        self.users.update(users, _add_up(of_users, user_places, len(users)))
        self.items.update(items, of_items)
        self.user_tower.update()
        self.item_tower.update()


def softmax_gradients(
    queries: Tensor, positives: Tensor, sampled: Tensor, batch: StepInputs
) -> tuple[Tensor, Tensor]:
    """Give the gradients of the mean loss by queries [B, D] and by candidates [B + S, D]."""
    (size, width), num_sampled = queries.shape, len(sampled)
    of_queries, of_positives = torch.empty_like(queries), torch.empty_like(queries)
    of_sampled = queries.new_zeros(width, num_sampled)  # transposed: faster to add to
    own = (queries * positives).sum(dim=1) - batch.positive_log_q
    hits, ends = _accidental_hits(batch)
    for start in range(0, size, _ROWS_OF_BLOCK):
        rows = slice(start, min(start + _ROWS_OF_BLOCK, size))
        some = queries[rows]
        logits = linear(some, sampled, -batch.sampled_log_q)  # [b, S]
        of_block = hits[ends[rows.start] : ends[rows.stop]] - start * num_sampled
        logits.view(-1).index_fill_(0, of_block, -math.inf)
        peak = logits.amax(dim=1)
        shares = torch.softmax(logits, dim=1, out=logits)
        log_sums = peak.sub_(shares.amax(dim=1).log_())  # the largest share is exp(peak - log sum)
        of_own = own[rows] - torch.logaddexp(own[rows], log_sums)  # log of the positive's share
        scale = of_own.expm1().neg_().div_(size)  # what is left to the sampled
        of_own = of_own.exp_().sub_(1).div_(size)[:, None]
        products = linear(shares, sampled.T).mul_(scale[:, None])
        of_queries[rows] = products.addcmul_(positives[rows], of_own)
        of_positives[rows] = some * of_own
        of_sampled += linear((some * scale[:, None]).T, shares.T)
    return of_queries, torch.cat([of_positives, of_sampled.T])


def _accidental_hits(batch: StepInputs) -> tuple[Tensor, list[int]]:
    """Find where a sampled candidate is the row's positive: places in [B, S], and row ends."""
    in_order, order = batch.sampled.sort()
    first = torch.searchsorted(in_order, batch.positives)
    counts = torch.searchsorted(in_order, batch.positives, right=True) - first
    ends = counts.cumsum(dim=0)
    rows = torch.repeat_interleave(counts)
    steps = torch.arange(len(rows)) - (ends - counts)[rows] + first[rows]
    return rows * len(order) + order[steps], [0, *ends.tolist()]


def _add_up(values: Tensor, places: Tensor, size: int) -> Tensor:
    return values.new_zeros(size, values.shape[1]).index_add_(0, places, values)


class FloorTable:
    """Vectors and one accumulator a row, updated by row-wise Adagrad."""

    def __init__(self, num_rows: int, dim: int, generator: torch.Generator) -> None:
        self.values = torch.randn(num_rows, dim, generator=generator).mul_(0.05)
        self._sums = torch.zeros(num_rows)

    def update(self, rows: Tensor, gradient: Tensor) -> None:
        """Update [R] distinct rows, by their gradient [R, D]."""
        squares = torch.linalg.vector_norm(gradient, dim=1).square_().div_(gradient.shape[1])
        sums = self._sums.index_select(0, rows).add_(squares)
        self._sums.index_copy_(0, rows, sums)
        factors = sums.sqrt_().add_(_EPS).reciprocal_().mul_(-_TABLE_RATE)
        held = self.values.index_select(0, rows)
        self.values.index_copy_(0, rows, held.addcmul_(gradient, factors[:, None]))


class FloorTower:
    """Two layers with a ReLU between them, updated by Adam."""

    def __init__(self, dim: int, hidden: int, generator: torch.Generator) -> None:
        self.first = torch.randn(hidden, dim, generator=generator) / dim**0.5
        self.second = torch.randn(dim, hidden, generator=generator) / hidden**0.5
        self.biases = torch.zeros(hidden), torch.zeros(dim)
        self._values = [self.first, self.second, *self.biases]
        self._means = [torch.zeros_like(value) for value in self._values]
        self._squares = [torch.zeros_like(value) for value in self._values]
        self._gradients: list[Tensor] = []
        self._inputs = self._hidden = torch.empty(0)

    def forward(self, inputs: Tensor) -> Tensor:
        """Give the outputs, [n, D], and keep what the gradients need."""
        self._inputs = inputs
        self._hidden = linear(inputs, self.first, self.biases[0]).relu_()
        return linear(self._hidden, self.second, self.biases[1])

    def backward(self, gradient: Tensor) -> Tensor:
        """Give the gradient by the inputs from that by the outputs, and keep the weights'."""
        of_hidden = linear(gradient, self.second.T)
        of_hidden = torch.ops.aten.threshold_backward(of_hidden, self._hidden, 0)
        self._gradients = [
            linear(of_hidden.T, self._inputs.T),
            linear(gradient.T, self._hidden.T),
            of_hidden.sum(dim=0),
            gradient.sum(dim=0),
        ]
        return linear(of_hidden, self.first.T)

    def update(self) -> None:
        """Update by Adam, without the correction of its first steps."""
        for value, gradient, mean, square in zip(
            self._values, self._gradients, self._means, self._squares, strict=True
        ):
            mean.lerp_(gradient, 0.1)
            square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            value.addcdiv_(mean, square.sqrt().add_(_EPS), value=-_LAYER_RATE)
