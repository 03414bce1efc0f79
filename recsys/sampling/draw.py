"""What a sampler is asked, what it gives, and the correction that goes with it.

Dimensions: B queries in the batch, S sampled candidates, C candidates in the catalogue, E output
width of the towers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from recsys.foundations import ArgumentError, FormatError, check_floats, check_integers, check_shape


@dataclass(frozen=True)
class DrawRequest:
    """All that a draw may depend on.

    Attributes:
        positive_rows: [B], int64, in the catalogue.
        last_rows: [B], int64: the newest item of each query's history, -1 where there is none.
            None: not known; a sampler that needs it says so.
        query_embeddings: [B, E], float, without a gradient; None: not known.
        groups: [B], int64, not negative: positives of one group stand in the batch together by
            construction, as the events of one user; only those of other groups are draws for a
            row. None: the positives were drawn one by one.
    """

    positive_rows: Tensor
    last_rows: Tensor | None = None
    query_embeddings: Tensor | None = None
    groups: Tensor | None = None

    def __post_init__(self) -> None:
        """Check that the shapes agree, and that rows are rows."""
        check_shape("positive_rows", self.positive_rows, None)
        check_integers("positive_rows", self.positive_rows)
        batch = len(self.positive_rows)
        if self.last_rows is not None:
            check_shape("last_rows", self.last_rows, batch)
            check_integers("last_rows", self.last_rows)
        if self.query_embeddings is not None:
            check_shape("query_embeddings", self.query_embeddings, batch, None)
            check_floats("query_embeddings", self.query_embeddings)
        if self.groups is not None:
            check_shape("groups", self.groups, batch)
            check_integers("groups", self.groups)

    def take(self, queries: Tensor) -> "DrawRequest":
        """Give the request of some queries only: [b], int64, on the CPU."""
        embeddings = self.query_embeddings
        return DrawRequest(
            self.positive_rows[queries],
            None if self.last_rows is None else self.last_rows[queries],
            None if embeddings is None else embeddings[queries.to(embeddings.device)],
            None if self.groups is None else self.groups[queries],
        )


@dataclass(frozen=True)
class StoredVectors:
    """Vectors that come with some columns of a sample, so that no tower has to compute them.

    Attributes:
        columns: [M], int64, columns of the sample, different.
        vectors: [M, E], float, without a gradient.
    """

    columns: Tensor
    vectors: Tensor

    def __post_init__(self) -> None:
        """Check that the shapes agree."""
        check_shape("columns", self.columns, None)
        check_shape("vectors", self.vectors, len(self.columns), None)


@dataclass(frozen=True)
class Sample:
    """Candidates of one sampler, and the Q of any candidate under how they were drawn.

    Attributes:
        rows: [S] (shared by the batch) or [B, S] (one sample a query), int64; repeats are allowed.
        log_expected_count: From rows, [K] or [B, K], to their log Q, float64: as the rows, or
            [B, K] for [K] where Q differs by query; -inf for what is never drawn. Holds until the
            sampler is updated.
        expected_size: The sum of the expected counts over the catalogue.
        own_columns: [B], int64; see `Draw`.
        column_groups: [S], int64; see `Draw`.
        stored: Vectors of some columns; None: of none.
        num_shared: The first columns, which are the same for every query; see `Draw`.
        live: The sample without its stored columns, under the Q of what is left; None where no
            column is stored, or all are.
    """

    rows: Tensor
    log_expected_count: Callable[[Tensor], Tensor]
    expected_size: float
    own_columns: Tensor | None = None
    column_groups: Tensor | None = None
    stored: StoredVectors | None = None
    num_shared: int = 0
    live: "Sample | None" = None


@dataclass(frozen=True)
class Draw:
    """Candidates that a sampler drew, with the correction that belongs to how it drew them.

    `log_q` is the natural log of a candidate's expected count in the sample. It is finite for all
    that was drawn, since nothing with an expected count of 0 is ever drawn.

    Attributes:
        rows: [S] (shared by the batch) or [B, S] (one sample a query), int64; repeats are allowed.
        log_q: As `rows`, float32.
        positive_log_q: [B], float32; of each query's positive under the same sampler.
        num_draws: The expected size of a query's sample: ``exp(log_q) / num_draws`` sums to 1 over
            the catalogue. S itself where S does not depend on chance.
        own_columns: [B], int64: the column that holds the query's own positive because it is the
            positive (in-batch draws), not by accident; it leaves its row in every form of the loss.
            None: no such columns.
        column_groups: [S], int64, of positives that came in groups (`DrawRequest.groups`): the
            group of each column, below 0 where it was drawn for all alike. A column leaves the rows
            of its own group; that is for whoever computes the loss to mask. None: no such columns.
        stored: Vectors of some columns, to be used in place of the tower's; None: of none.
        num_shared: Where `rows` is [B, S]: so many first columns are the same for every query, so
            that they need not be embedded B times.
        live: The draw without its stored columns, under the Q of what is left, for the gradient of
            the candidates, which stored vectors cannot take part in; None where no column is
            stored, or all are.
    """

    rows: Tensor
    log_q: Tensor
    positive_log_q: Tensor
    num_draws: float
    own_columns: Tensor | None = None
    column_groups: Tensor | None = None
    stored: StoredVectors | None = None
    num_shared: int = 0
    live: "Draw | None" = None

    def __post_init__(self) -> None:
        """Check that the shapes agree."""
        check_shape("log_q", self.log_q, *self.rows.shape)
        check_shape("positive_log_q", self.positive_log_q, None)
        if self.own_columns is not None:
            check_shape("own_columns", self.own_columns, len(self.positive_log_q))
        if self.column_groups is not None:
            check_shape("column_groups", self.column_groups, self.rows.shape[-1])


class Sampler(Protocol):
    """Draw candidates for a batch; all randomness comes from the generator that is given."""

    def sample(self, request: DrawRequest, generator: torch.Generator) -> Sample:
        """Draw candidates for the batch."""
        ...

    def update(self, positive_rows: Tensor, positive_embeddings: Tensor) -> None:
        """Learn from a step once its draw was used: [B] int64, and [B, E] without a gradient."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """Give what a checkpoint must hold; empty for a sampler that does not change."""
        ...

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up the state that `state_dict` gave."""
        ...


def draw(sampler: Sampler, request: DrawRequest, generator: torch.Generator) -> Draw:
    """Draw candidates and attach their log Q and that of the positives.

    Args:
        sampler: Where the candidates come from.
        request: The batch.
        generator: The only source of randomness.

    Raises:
        ArgumentError: A positive or a drawn candidate has an expected count of 0, so that no
            correction exists; or the sampler refuses the request.
    """
    return _correct(sampler.sample(request, generator), request.positive_rows)


def _correct(sample: Sample, positives: Tensor) -> Draw:
    """Attach the Q of the sample's columns and of the positives [B]."""
    positive_log_q = sample.log_expected_count(positives[:, None])[:, 0]  # [B]
    _check_positives(positives, positive_log_q)
    rows, num_shared = sample.rows, sample.num_shared
    if num_shared > 0 and rows.ndim == 2:
        own_rows = rows[:, num_shared:]
        shared_log_q = sample.log_expected_count(rows[0, :num_shared])
        own_log_q = sample.log_expected_count(own_rows)
        shared_log_q = shared_log_q.expand(len(rows), num_shared)
        log_q = torch.cat([shared_log_q, own_log_q], dim=1)  # [B, S]
    else:
        log_q = sample.log_expected_count(rows)
        num_shared = log_q.shape[-1] if rows.ndim == 1 < log_q.ndim else 0
        rows = rows.expand(log_q.shape)  # [S], or [B, S] where Q differs by query
    _check_drawn(rows, log_q)
    return Draw(
        rows=rows,
        log_q=log_q.float(),
        positive_log_q=positive_log_q.float(),
        num_draws=sample.expected_size,
        own_columns=sample.own_columns,
        column_groups=sample.column_groups,
        stored=sample.stored,
        num_shared=num_shared,
        live=None if sample.live is None else _correct(sample.live, positives),
    )


def _check_positives(positive_rows: Tensor, positive_log_q: Tensor) -> None:
    unreachable = positive_rows[positive_log_q == float("-inf")]
    if len(unreachable):
        raise ArgumentError(
            f"`positive_rows` must hold candidates that the sampler can draw, got row "
            f"{int(unreachable[0])} ({len(unreachable)} in this batch), whose expected count is 0."
        )


def _check_drawn(rows: Tensor, log_q: Tensor) -> None:
    impossible = rows[log_q == float("-inf")]
    if len(impossible):
        raise ArgumentError(
            f"`sampler` must state an expected count above 0 for what it draws, got 0 for row "
            f"{int(impossible[0])} ({len(impossible)} in this sample)."
        )


def check_rows(name: str, rows: Tensor, num_candidates: int) -> None:
    """Check that rows lie in the catalogue; a negative one would silently count from the end.

    Raises:
        ArgumentError: A row is below 0 or not below `num_candidates`, or is no integer.
    """
    check_integers(name, rows)
    outside = rows[(rows < 0) | (rows >= num_candidates)]
    if len(outside):
        raise ArgumentError(
            f"`{name}` must be in [0, {num_candidates}), got {int(outside.flatten()[0])}."
        )


def check_no_state(state: Mapping[str, Tensor]) -> None:
    """Check that a checkpoint holds nothing for a sampler that has no state.

    Raises:
        FormatError: It does: it was written by another sampler.
    """
    if state:
        raise FormatError(
            f"The checkpoint's sampler state must be empty for this sampler, got {sorted(state)}."
        )
