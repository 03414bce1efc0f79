"""The candidates of an estimator, and what a loss takes.

Dimensions: N rows, b rows of a block, S candidates a row, D width of the embeddings that a loss
gets.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from recsys.sampling import Draw


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """Candidates of N rows.

    Attributes:
        rows: [S], shared by the rows, or [N, S]; int64.
        log_q: As `rows`, float32; None where the estimate needs none.
        positive_log_q: [N], likewise.
        num_draws: Candidates of a row, repeats counted; expected where chance decides it.
        own_columns: [N] or None; see `recsys.sampling.Draw`.
        weights: [N, S], of estimates by weighted scores; None elsewhere.
        shares: [N, S], the share of a row's draws that a column stands for; None: 1 / S.
        exact_rows: [N], bool: rows whose sample was not worth enough, so that they take the full
            softmax. None: none does.
        facts: What the draw was like, as means over the rows.
    """

    rows: Tensor
    num_draws: float
    log_q: Tensor | None = None
    positive_log_q: Tensor | None = None
    own_columns: Tensor | None = None
    weights: Tensor | None = None
    shares: Tensor | None = None
    exact_rows: Tensor | None = None
    facts: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, drawn: Draw) -> "Candidates":
        """Take over a draw."""
        return cls(
            rows=drawn.rows,
            num_draws=drawn.num_draws,
            log_q=drawn.log_q,
            positive_log_q=drawn.positive_log_q,
            own_columns=drawn.own_columns,
        )

    @property
    def is_shared(self) -> bool:
        """Tell whether all rows have the same candidates."""
        return self.rows.dim() == 1

    @property
    def num_columns(self) -> int:
        """Give S."""
        return self.rows.shape[-1]

    def take(self, rows: slice) -> "Candidates":
        """Take a block of the rows; what they share stays whole."""
        shared = self.is_shared
        return replace(
            self,
            rows=self.rows if shared else self.rows[rows],
            log_q=self.log_q if shared or self.log_q is None else self.log_q[rows],
            positive_log_q=_taken(self.positive_log_q, rows),
            own_columns=_taken(self.own_columns, rows),
            weights=_taken(self.weights, rows),
            shares=_taken(self.shares, rows),
            exact_rows=_taken(self.exact_rows, rows),
        )

    def by_row(self, num_rows: int) -> "Candidates":
        """Give each of so many rows its own view of shared candidates: `rows` is [b, S]."""
        shape = (num_rows, self.num_columns)
        log_q = None if self.log_q is None else self.log_q.expand(shape)
        return replace(self, rows=self.rows.expand(shape), log_q=log_q)


def _taken(tensor: Tensor | None, rows: slice) -> Tensor | None:
    return None if tensor is None else tensor[rows]


@dataclass(frozen=True, kw_only=True)
class LossInputs:
    """Embeddings and biases of a block of rows, as the public losses take them.

    Attributes:
        queries: [b, D].
        positives: [b, D].
        sampled: [S, D] or [b, S, D].
        positive_rows: [b], int64.
        temperature: Divides the scores.
        positive_biases: [b] or None.
        sampled_biases: As the sampled rows, or None.
    """

    queries: Tensor
    positives: Tensor
    sampled: Tensor
    positive_rows: Tensor
    temperature: float
    positive_biases: Tensor | None = None
    sampled_biases: Tensor | None = None

    @classmethod
    def of_scores(
        cls,
        positive_scores: Tensor,
        sampled_scores: Tensor,
        positive_rows: Tensor,
        temperature: float,
    ) -> "LossInputs":
        """Hand scores, [b] and [b, S], to a loss as biases of embeddings that are 0."""
        width_one = torch.zeros_like(positive_scores)[:, None]  # [b, 1]
        return cls(
            queries=width_one,
            positives=width_one,
            sampled=torch.zeros_like(sampled_scores)[:, :, None],  # [b, S, 1]
            positive_rows=positive_rows,
            temperature=temperature,
            positive_biases=positive_scores,
            sampled_biases=sampled_scores,
        )

    def arguments(self) -> dict[str, Any]:
        """Give what every loss over a sample takes, by name."""
        return {
            "query_embeddings": self.queries,
            "positive_embeddings": self.positives,
            "sampled_embeddings": self.sampled,
            "temperature": self.temperature,
            "positive_biases": self.positive_biases,
            "sampled_biases": self.sampled_biases,
        }
