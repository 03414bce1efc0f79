"""What a sampler gives and what it must offer.

Dimensions: B queries in the batch, S sampled candidates, C candidates in the catalogue.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from recsys.foundations import ArgumentError, FormatError, check_shape


@dataclass(frozen=True)
class Draw:
    """Candidates that a sampler drew, with the correction that belongs to how it drew them.

    `log_q` is the natural log of a candidate's expected count in the sample. It is finite for all
    that was drawn, since nothing with an expected count of 0 is ever drawn.

    Attributes:
        rows: [S] (shared by the batch) or [B, S] (one sample a query), int64; repeats are allowed.
        log_q: As `rows`, float32.
        positive_log_q: [B], float32; of each query's positive under the same sampler.
        num_draws: Draws a query; `log_q - log(num_draws)` is the log probability of one draw (for
            a mixture, the mixture's).
        own_columns: [B], int64: the column that holds the query's own positive because it is the
            positive (in-batch draws), not by accident; it leaves its row in every form of the loss.
            None: no such columns.
    """

    rows: Tensor
    log_q: Tensor
    positive_log_q: Tensor
    num_draws: int
    own_columns: Tensor | None = None

    def __post_init__(self) -> None:
        """Check that the shapes agree."""
        check_shape("log_q", self.log_q, *self.rows.shape)
        check_shape("positive_log_q", self.positive_log_q, None)
        if self.own_columns is not None:
            check_shape("own_columns", self.own_columns, len(self.positive_log_q))


class Sampler(Protocol):
    """Draw candidates for a batch; all randomness comes from the generator that is given."""

    def draw(self, positive_rows: Tensor, generator: torch.Generator) -> Draw:
        """Draw candidates for the batch whose positives are given: [B], int64."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """Give what a checkpoint must hold; empty for a sampler that does not change."""
        ...

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up the state that `state_dict` gave."""
        ...


class Stream(Sampler, Protocol):
    """A sampler that can be one of several in a mixture: it can name the Q of any candidate."""

    def draw_rows(self, positive_rows: Tensor, generator: torch.Generator) -> Tensor:
        """Draw candidates only: [S], int64."""
        ...

    def log_expected_count(self, rows: Tensor, batch_size: int) -> Tensor:
        """Give log Q of any candidates: as `rows`, float64; -inf where one is never drawn."""
        ...

    def num_columns(self, batch_size: int) -> int:
        """Give S, the number of candidates in a draw for B queries."""
        ...

    def own_columns(self, batch_size: int) -> Tensor | None:
        """Give the columns that hold the positives themselves: [B], or None if none do."""
        ...


def draw_from(stream: Stream, positive_rows: Tensor, generator: torch.Generator) -> Draw:
    """Draw from a stream and attach its log Q.

    Args:
        stream: Where the candidates come from.
        positive_rows: [B], int64, in the catalogue.
        generator: The only source of randomness.

    Raises:
        ArgumentError: A positive has an expected count of 0, so that no correction exists.
        ShapeError: `positive_rows` is not [B].
    """
    check_shape("positive_rows", positive_rows, None)
    batch_size = len(positive_rows)
    rows = stream.draw_rows(positive_rows, generator)  # [S]
    positive_log_q = stream.log_expected_count(positive_rows, batch_size)  # [B]
    _check_reachable(positive_rows, positive_log_q)
    return Draw(
        rows=rows,
        log_q=stream.log_expected_count(rows, batch_size).float(),
        positive_log_q=positive_log_q.float(),
        num_draws=len(rows),
        own_columns=stream.own_columns(batch_size),
    )


def _check_reachable(positive_rows: Tensor, positive_log_q: Tensor) -> None:
    unreachable = positive_rows[positive_log_q == float("-inf")]
    if len(unreachable):
        raise ArgumentError(
            f"`positive_rows` must hold candidates that the sampler can draw, got row "
            f"{int(unreachable[0])} ({len(unreachable)} in this batch), whose expected count is 0."
        )


def check_rows(name: str, rows: Tensor, num_candidates: int) -> None:
    """Check that rows lie in the catalogue; a negative one would silently count from the end.

    Raises:
        ArgumentError: A row is below 0 or not below `num_candidates`.
    """
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
