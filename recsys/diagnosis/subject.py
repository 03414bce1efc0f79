"""What estimators are measured on: queries, their positives, and the catalogue, as vectors.

Dimensions: N rows (a query and its positive each), C candidates, E output width.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from recsys.foundations import check_positive, check_shape

_MOST_SCORES = 2**22  # of rows times catalogue at once: 16 MB


@dataclass(frozen=True)
class Peers:
    """Positives of the training batch that a row is imagined in.

    Attributes:
        rows: [K], int64.
        are_own: Whether they are the positives of the measured rows, in their order, and not those
            of other rows.
    """

    rows: Tensor
    are_own: bool


class PeerSource(Protocol):
    """Gives the batch that in-batch candidates come from."""

    def draw(self, num_peers: int, generator: torch.Generator) -> Peers:
        """Give the positives of a batch; `num_peers` where their number is free."""
        ...


class DrawnPeers:
    """Positives of other rows, drawn from the training part as the loader emits them.

    Args:
        training_rows: [T], int64, the items of all training events.
    """

    def __init__(self, training_rows: Tensor) -> None:
        self._rows = training_rows

    def draw(self, num_peers: int, generator: torch.Generator) -> Peers:
        """Draw with replacement, which costs the same for a log of any length."""
        places = torch.randint(len(self._rows), (num_peers,), generator=generator)
        return Peers(self._rows[places], are_own=False)


class BatchPeers:
    """The rows' own positives: the rows are the batch.

    Args:
        positive_rows: [N], int64.
    """

    def __init__(self, positive_rows: Tensor) -> None:
        self._rows = positive_rows

    def draw(self, num_peers: int, generator: torch.Generator) -> Peers:  # noqa: ARG002
        """Give all N, whatever the number asked for."""
        return Peers(self._rows, are_own=True)


@dataclass(frozen=True)
class Subject:
    """Rows to measure on.

    Attributes:
        query_vectors: [N, E], float32.
        positive_rows: [N], int64, in the catalogue.
        last_rows: [N], int64; the newest item of each query's history, -1 where there is none.
        item_vectors: [C, E], float32; the whole catalogue.
        temperature: Divides the scores; above 0.
        peers: Where in-batch candidates come from.
    """

    query_vectors: Tensor
    positive_rows: Tensor
    last_rows: Tensor
    item_vectors: Tensor
    temperature: float
    peers: PeerSource

    def __post_init__(self) -> None:
        """Check that the shapes agree."""
        check_positive("temperature", self.temperature)
        check_shape("query_vectors", self.query_vectors, None, None)
        check_shape("item_vectors", self.item_vectors, None, self.query_vectors.shape[1])
        check_shape("positive_rows", self.positive_rows, len(self))
        check_shape("last_rows", self.last_rows, len(self))

    def __len__(self) -> int:
        return len(self.query_vectors)

    @property
    def num_items(self) -> int:
        """Give C."""
        return len(self.item_vectors)

    def scores(self, rows: slice = slice(None)) -> Tensor:
        """Score the whole catalogue for a block of rows: [b, C], not yet over the temperature."""
        return self.query_vectors[rows] @ self.item_vectors.T

    def scores_of(self, candidate_rows: Tensor) -> Tensor:
        """Score candidates [S] for every row: [N, S]."""
        return self.query_vectors @ self.item_vectors[candidate_rows].T

    def log_partition(self) -> Tensor:
        """Sum exp(score / temperature) over the catalogue: its log [N]; O(N C)."""
        blocks = [self.scores(rows) / self.temperature for rows in self.blocks()]
        return torch.cat([block.logsumexp(dim=1) for block in blocks])

    def blocks(self) -> Iterator[slice]:
        """Cut the rows so that the scores of a block over the catalogue stay small."""
        step = max(_MOST_SCORES // self.num_items, 1)
        for start in range(0, len(self), step):
            yield slice(start, min(start + step, len(self)))
