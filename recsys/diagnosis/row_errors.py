"""Bias and noise of an estimator, row by row, over many draws.

Dimensions: N rows, b rows of a block, C candidates, E output width, R draws.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.diagnosis.candidates import Candidates
from recsys.diagnosis.estimator import Estimator
from recsys.diagnosis.score_gradient import RowGradients, estimated_gradients, full_gradients
from recsys.diagnosis.subject import Subject
from recsys.foundations import check_positive, make_generator
from recsys.losses import effective_sample_size

GRADIENTS = ("scores", "query_vectors", "item_vectors")
Values = NDArray[np.float64]


@dataclass(frozen=True)
class RowErrors:
    """What the draws came to; every array has a row for each of the N rows.

    Attributes:
        num_draws: R.
        full_squares: [N, 3], squared norm of the full softmax's gradient, for `GRADIENTS`.
        bias_squares: [N, 3], squared norm of (mean estimate - full).
        error_squares: [N, 3], mean over the draws of the squared norm of (estimate - full).
        loss_differences: [N], mean of (loss - full loss), nats.
        loss_squares: [N], mean of its square.
        hits: [N], share of the candidates that are the row's positive.
        effective_sizes: [N], mean effective sample size; NaN where the estimate has none.
        facts: Means of what the draws say of themselves: `candidates`, the number a row has, and
            what else the estimator tells.
    """

    num_draws: int
    full_squares: Values
    bias_squares: Values
    error_squares: Values
    loss_differences: Values
    loss_squares: Values
    hits: Values
    effective_sizes: Values
    facts: dict[str, float]


def measure_rows(
    estimator: Estimator,
    subject: Subject,
    size: int,
    *,
    num_draws: int,
    stream: tuple[str | int, ...],
    advance: Callable[[int], None],
) -> RowErrors:
    """Draw R times for the rows and compare the gradients with the full softmax's.

    Each row counts on its own, as an example of a batch does: the gradient of its scores [C], of
    its query vector [E], and of the item vectors, which is the former times the query vector. The
    result does not depend on how rows are cut into blocks.

    Args:
        estimator: What is measured.
        subject: The rows.
        size: The sample size as it is set.
        num_draws: R, at least 1.
        stream: Seed and names of the random stream; each draw has one of its own.
        advance: Is told of each draw done, of each block of rows.
    """
    check_positive("num_draws", num_draws)
    seed, *names = stream
    blocks: list[_Block] = []
    told: list[dict[str, float]] = []
    for rows in subject.blocks():
        block = _Block(estimator, subject, rows)
        for turn in range(num_draws):
            generator = make_generator(int(seed), *names, size, turn)
            candidates = estimator.sample(subject, size, generator)
            block.add(candidates.take(rows))
            told.append({"candidates": candidates.num_draws, **candidates.facts})
            advance(1)
        blocks.append(block)
    return RowErrors(
        num_draws=num_draws,
        full_squares=np.concatenate([block.full_squares for block in blocks]),
        bias_squares=np.concatenate([block.bias_squares() for block in blocks]),
        error_squares=np.concatenate([block.errors / num_draws for block in blocks]),
        loss_differences=np.concatenate([block.loss_sums[:, 0] / num_draws for block in blocks]),
        loss_squares=np.concatenate([block.loss_sums[:, 1] / num_draws for block in blocks]),
        hits=np.concatenate([block.hits / num_draws for block in blocks]),
        effective_sizes=np.concatenate([block.effective_sizes / num_draws for block in blocks]),
        facts={name: float(np.mean([one[name] for one in told])) for name in told[0]},
    )


class _Block:
    """Sums over the draws for a block of rows."""

    def __init__(self, estimator: Estimator, subject: Subject, rows: slice) -> None:
        self._estimator, self._temperature = estimator, subject.temperature
        self._items, self._queries = subject.item_vectors, subject.query_vectors[rows]
        self._positive_rows = subject.positive_rows[rows]
        self._scores = subject.scores(rows)  # [b, C]
        self._full = full_gradients(self._scores, self._positive_rows, subject.temperature)
        self._total = torch.zeros_like(self._scores)  # of the differences to the full gradient
        self._num_draws = 0
        self.full_squares = self._squares(self._full.gradients)
        self.errors = np.zeros_like(self.full_squares)  # [b, 3]
        self.loss_sums = np.zeros((len(self._scores), 2))
        self.hits, self.effective_sizes = np.zeros(len(self._scores)), np.zeros(len(self._scores))

    def add(self, candidates: Candidates) -> None:
        """Take in one draw for the block's rows."""
        estimate = estimated_gradients(
            self._estimator,
            candidates,
            self._scores,
            self._positive_rows,
            self._full,
            temperature=self._temperature,
        )
        difference = estimate.gradients.sub_(self._full.gradients)
        self._num_draws += 1
        self._total += difference
        self.errors += self._squares(difference)
        self._add_losses(estimate)
        self.hits += _hit_shares(candidates, self._positive_rows).numpy()
        self.effective_sizes += self._effective_sizes(candidates).numpy()

    def bias_squares(self) -> Values:
        """Give the squared norms of the mean difference: [b, 3]."""
        return self._squares(self._total / self._num_draws)

    def _squares(self, of_scores: Tensor) -> Values:
        """Give squared norms of a gradient [b, C] and what it makes of the tower outputs: [b, 3].

        A row's gradient of the item vectors is an outer product: of its scores' and its query.
        """
        scores = of_scores.square().sum(dim=1)
        queries = (of_scores @ self._items).square().sum(dim=1)
        items = scores * self._queries.square().sum(dim=1)
        return torch.stack([scores, queries, items], dim=1).double().numpy()

    def _add_losses(self, estimate: RowGradients) -> None:
        difference = (estimate.losses - self._full.losses).double().numpy()
        self.loss_sums += np.stack([difference, difference**2], axis=1)

    def _effective_sizes(self, candidates: Candidates) -> Tensor:
        """Give the effective sample size of each row: [b]; NaN where it has no meaning."""
        if candidates.log_q is None:
            told = candidates.facts.get("effective_sample_size", float("nan"))
            return torch.full((len(self._scores),), told)
        rows = candidates.by_row(len(self._scores)).rows
        log_weights = self._scores.gather(1, rows) / self._temperature - candidates.log_q
        return effective_sample_size(log_weights)


def _hit_shares(candidates: Candidates, positive_rows: Tensor) -> Tensor:
    """Give the share of each row's candidates that are its positive by accident: [b]."""
    hits = candidates.by_row(len(positive_rows)).rows == positive_rows[:, None]  # [b, S]
    if candidates.own_columns is not None:
        hits = hits.scatter(1, candidates.own_columns[:, None], False)
    if candidates.shares is not None:
        return (hits * candidates.shares).sum(dim=1)
    return hits.float().mean(dim=1)
