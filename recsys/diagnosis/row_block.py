"""Sums over the draws of an estimator, for a block of rows.

Dimensions: b rows of the block, S candidates a row, C candidates in the catalogue, E output width.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.diagnosis.candidates import Candidates
from recsys.diagnosis.estimator import Estimator
from recsys.diagnosis.score_gradient import (
    EstimatedGradients,
    estimated_gradients,
    full_gradients,
)
from recsys.diagnosis.subject import Subject
from recsys.losses import effective_sample_size

Values = NDArray[np.float64]


class RowBlock:
    """Takes in draws; with few candidates a draw's cost does not grow with the catalogue.

    Args:
        estimator: What is measured.
        subject: All rows.
        rows: Those of the block.

    Attributes:
        full_squares: [b, 3], squared norms of the full softmax's gradient: of the scores, of the
            query vector, of the item vectors (an outer product: of the scores' and the query).
        errors: [b, 3], likewise of (estimate - full), summed over the draws.
        loss_sums: [b, 2], sums of (loss - full loss) and of its square.
        hits: [b], sums of the share of candidates that are the row's positive.
        effective_sizes: [b], sums of the effective sample size; NaN where it has no meaning.
    """

    def __init__(self, estimator: Estimator, subject: Subject, rows: slice) -> None:
        self._estimator, self._temperature = estimator, subject.temperature
        self._items, self._queries = subject.item_vectors, subject.query_vectors[rows]
        self._positive_rows = subject.positive_rows[rows]
        self._scores = subject.scores(rows)  # [b, C]
        self._full = full_gradients(self._scores, self._positive_rows, subject.temperature)
        self._full_of_queries = self._full.gradients @ self._items  # [b, E]
        self._total = torch.zeros_like(self._scores)  # of the estimates
        self._scratch = torch.zeros_like(self._scores)  # 0 between draws
        self._num_draws = 0
        size = len(self._scores)
        self._full_square = self._full.gradients.double().square().sum(dim=1)  # [b]
        self.full_squares = self._with_items(self._full_square, self._full_of_queries)
        self.errors, self.loss_sums = np.zeros((size, 3)), np.zeros((size, 2))
        self.hits, self.effective_sizes = np.zeros(size), np.zeros(size)

    def add(self, candidates: Candidates) -> None:
        """Take in one draw for the block's rows."""
        estimate = estimated_gradients(
            self._estimator,
            candidates,
            self._scores,
            self._positive_rows,
            temperature=self._temperature,
        )
        self._num_draws += 1
        if self._touches_most(candidates):
            scores, queries = self._visit_all(estimate)
        else:
            scores = self._visit_touched(estimate)
            queries = self._gradient_of_queries(candidates, estimate)
        losses = estimate.losses - self._full.losses
        if candidates.exact_rows is not None:
            exact = candidates.exact_rows
            losses, scores = losses.masked_fill(exact, 0), scores.masked_fill(exact, 0)
            queries = torch.where(exact[:, None], self._full_of_queries, queries)
            estimate.values[exact] = 0
            self._total[exact] += self._full.gradients[exact]
        self._total.scatter_add_(1, estimate.columns, estimate.values)
        self.errors += self._with_items(scores, queries - self._full_of_queries)
        differences = losses.double().numpy()
        self.loss_sums += np.stack([differences, differences**2], axis=1)
        self.hits += _hit_shares(candidates, self._positive_rows).numpy()
        self.effective_sizes += self._effective_sizes(candidates).numpy()

    def bias_squares(self) -> Values:
        """Give the squared norms of the mean of (estimate - full): [b, 3]."""
        difference = self._total / self._num_draws - self._full.gradients
        return self._squares(difference, difference @ self._items)

    def _squares(self, of_scores: Tensor, of_queries: Tensor) -> Values:
        return self._with_items(of_scores.double().square().sum(dim=1), of_queries)

    def _with_items(self, score_squares: Tensor, of_queries: Tensor) -> Values:
        """Put the three squared norms side by side: [b, 3]."""
        queries = of_queries.double().square().sum(dim=1)
        items = score_squares * self._queries.double().square().sum(dim=1)
        return torch.stack([score_squares, queries, items], dim=1).numpy()

    def _touches_most(self, candidates: Candidates) -> bool:
        """Tell whether to visit the whole catalogue is quicker than to visit what was drawn."""
        dearness = 4 if candidates.is_shared else 16  # of a column, against one in its place
        return dearness * candidates.num_columns >= self._scores.shape[1]

    def _visit_all(self, estimate: EstimatedGradients) -> tuple[Tensor, Tensor]:
        """Compute ``||estimate - full||^2`` of the scores, [b]; and of the queries [b, E]."""
        self._scratch.scatter_add_(1, estimate.columns, estimate.values)
        queries = self._scratch @ self._items
        squares = self._scratch.sub_(self._full.gradients).square_().sum(dim=1).double()
        self._scratch.zero_()
        return squares, queries

    def _visit_touched(self, estimate: EstimatedGradients) -> Tensor:
        """Compute ``||estimate - full||^2`` of the scores from the touched columns alone: [b].

        A column that stands in a row m times has its term m times, each divided by m. In float64,
        for the terms nearly cancel where the estimate is good.
        """
        columns = estimate.columns
        estimated = self._collect(columns, estimate.values).double()
        repeats = self._collect(columns, torch.ones_like(estimate.values))
        full = self._full.gradients.gather(1, columns).double()
        changes = ((estimated - full).square() - full.square()) / repeats
        squares = self._full_square + changes.sum(dim=1)
        return squares.clamp(min=0)  # rounding alone takes it below

    def _collect(self, columns: Tensor, values: Tensor) -> Tensor:
        """Sum the values of equal columns within each row, and give every column its sum."""
        self._scratch.scatter_add_(1, columns, values)
        sums = self._scratch.gather(1, columns)
        self._scratch.scatter_(1, columns, 0.0)
        return sums

    def _gradient_of_queries(self, candidates: Candidates, estimate: EstimatedGradients) -> Tensor:
        """Sum the item vectors by the gradient of their scores: [b, E]."""
        positive = estimate.values[:, :1] * self._items[self._positive_rows]
        vectors = self._items[candidates.rows]  # [S, E] or [b, S, E]
        sampled = estimate.values[:, 1:]
        if candidates.is_shared:
            return positive + sampled @ vectors
        return positive + torch.bmm(sampled[:, None], vectors)[:, 0]

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
