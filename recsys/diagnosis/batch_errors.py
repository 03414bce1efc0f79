"""Error and time of an estimator for one step at the batch size of training.

Dimensions: B rows in the batch, b of them in a block, S candidates, C candidates in the catalogue,
E output width of the towers.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from recsys.diagnosis.candidates import Candidates, LossInputs
from recsys.diagnosis.estimator import Estimator
from recsys.diagnosis.subject import Subject
from recsys.losses import full_softmax_loss

_MOST_VALUES = 2**24  # of rows times candidates times width at once, where rows have their own


@dataclass(frozen=True)
class OutputGradient:
    """The gradient of a batch's mean loss with respect to the outputs of both towers.

    Attributes:
        queries: [B, E].
        items: [C, E].
    """

    queries: Tensor
    items: Tensor

    def minus(self, other: Self) -> "OutputGradient":
        """Give the difference."""
        return OutputGradient(self.queries - other.queries, self.items - other.items)

    def dot(self, other: Self) -> float:
        """Give the inner product over all values."""
        return float((self.queries * other.queries).sum() + (self.items * other.items).sum())


@dataclass(frozen=True)
class BatchError:
    """What one step came to.

    Attributes:
        query_square: Squared norm of the error of the query vectors' gradient.
        item_square: Likewise of the item vectors'.
        full_query_square: Squared norm of the full softmax's gradient of the query vectors.
        full_item_square: Likewise of the item vectors.
        cosine: Between estimate and full gradient, over the values of both towers.
        draw_seconds: To draw the candidates.
        seconds: To draw, and for the loss forward and backward; without the towers.
    """

    query_square: float
    item_square: float
    full_query_square: float
    full_item_square: float
    cosine: float
    draw_seconds: float
    seconds: float


def full_gradient(subject: Subject) -> OutputGradient:
    """Compute the full softmax's gradient of the batch's mean loss."""
    queries = subject.query_vectors.detach().requires_grad_()
    items = subject.item_vectors.detach().requires_grad_()
    losses = full_softmax_loss(
        queries, items, positive_rows=subject.positive_rows, temperature=subject.temperature
    )
    return OutputGradient(*torch.autograd.grad(losses.mean(), [queries, items]))


def measure_step(
    estimator: Estimator,
    subject: Subject,
    size: int,
    full: OutputGradient,
    generator: torch.Generator,
) -> BatchError:
    """Take one step's gradient and compare it with the full softmax's.

    Args:
        estimator: What is measured.
        subject: The rows of the batch.
        size: The sample size as it is set.
        full: Of the same batch.
        generator: Source of the draw.
    """
    started = time.perf_counter()
    candidates = estimator.sample(subject, size, generator)
    drawn = time.perf_counter()
    parts = [
        _differentiate(estimator, subject, candidates, rows)
        for rows in _blocks(subject, candidates)
    ]
    exact = _exact_part(subject, candidates)
    ended = time.perf_counter()
    estimate = _assemble(subject, candidates, parts, exact)
    difference = estimate.minus(full)
    norms = (estimate.dot(estimate) * full.dot(full)) ** 0.5
    return BatchError(
        query_square=float(difference.queries.square().sum()),
        item_square=float(difference.items.square().sum()),
        full_query_square=float(full.queries.square().sum()),
        full_item_square=float(full.items.square().sum()),
        cosine=estimate.dot(full) / norms if norms > 0 else 0.0,
        draw_seconds=drawn - started,
        seconds=ended - started,
    )


@dataclass(frozen=True)
class _Part:
    """Gradients of a block: of its queries, its positives, its candidates."""

    rows: slice
    queries: Tensor
    positives: Tensor | None  # None: the positives are among the candidates
    sampled: Tensor


def _blocks(subject: Subject, candidates: Candidates) -> Iterator[slice]:
    """Cut the rows where each has its own candidates, whose vectors are [b, S, E]."""
    step = len(subject)
    if not candidates.is_shared:
        width = candidates.num_columns * subject.item_vectors.shape[1]
        step = max(_MOST_VALUES // width, 1)
    for start in range(0, len(subject), step):
        yield slice(start, min(start + step, len(subject)))


def _differentiate(
    estimator: Estimator, subject: Subject, candidates: Candidates, rows: slice
) -> _Part:
    """Compute the gradients of a block's share of the mean loss, as a training step does."""
    block, positive_rows = candidates.take(rows), subject.positive_rows[rows]
    inputs = LossInputs(
        queries=subject.query_vectors[rows].detach().requires_grad_(),
        positives=subject.item_vectors[positive_rows].requires_grad_(),
        sampled=subject.item_vectors[block.rows].requires_grad_(),
        positive_rows=positive_rows,
        temperature=subject.temperature,
    )
    losses = estimator.loss(inputs, block)
    if block.exact_rows is not None:
        losses = losses.masked_fill(block.exact_rows, 0)
    queries, positives, sampled = torch.autograd.grad(
        losses.sum() / len(subject),
        [inputs.queries, inputs.positives, inputs.sampled],
        allow_unused=True,
    )
    return _Part(rows, queries, positives, sampled)


def _exact_part(subject: Subject, candidates: Candidates) -> OutputGradient | None:
    """Compute the full softmax's gradient for the rows that take it."""
    if candidates.exact_rows is None or not candidates.exact_rows.any():
        return None
    queries = subject.query_vectors.detach().requires_grad_()
    items = subject.item_vectors.detach().requires_grad_()
    rows = candidates.exact_rows.nonzero().squeeze(1)
    losses = full_softmax_loss(
        queries[rows],
        items,
        positive_rows=subject.positive_rows[rows],
        temperature=subject.temperature,
    )
    return OutputGradient(*torch.autograd.grad(losses.sum() / len(subject), [queries, items]))


def _assemble(
    subject: Subject, candidates: Candidates, parts: list[_Part], exact: OutputGradient | None
) -> OutputGradient:
    """Add up what every row says of every item."""
    items = torch.zeros_like(subject.item_vectors)
    for part in parts:
        rows = candidates.take(part.rows).rows
        items.index_add_(0, rows.flatten(), part.sampled.flatten(0, -2))
        if part.positives is not None:
            items.index_add_(0, subject.positive_rows[part.rows], part.positives)
    queries = torch.cat([part.queries for part in parts])
    if exact is not None:
        queries, items = queries + exact.queries, items + exact.items
    return OutputGradient(queries, items)
