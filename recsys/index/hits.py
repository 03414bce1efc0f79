"""What a search gives, and what every index offers.

Dimensions: B queries, M interests of a query, C candidates, D embedding width, k results asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import Ragged


@dataclass(frozen=True)
class Hits:
    """The best candidates of B queries as flat arrays, query after query.

    The hits of query b are ``[offsets[b] : offsets[b + 1]]``, ordered by score (falling), then by
    row (rising); distinct; never more than k; fewer only where fewer candidates remain.

    Attributes:
        offsets: [B + 1], int64, from 0, never falling.
        candidate_rows: [offsets[-1]], int64, in [0, C).
        scores: [offsets[-1]], float32, finite; the largest inner product over a query's M.
    """

    offsets: NDArray[np.int64]
    candidate_rows: NDArray[np.int64]
    scores: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, query: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        hits = slice(self.offsets[query], self.offsets[query + 1])
        return self.candidate_rows[hits], self.scores[hits]

    def __iter__(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        return (self[query] for query in range(len(self)))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Give how many hits each query has: [B], int64."""
        return self.offsets[1:] - self.offsets[:-1]

    @property
    def lists(self) -> Ragged:
        """Give the candidate rows as B lists."""
        return Ragged(self.offsets, self.candidate_rows)

    def ranks(self) -> NDArray[np.int32]:
        """Give the rank of each hit within its query, from 1: [offsets[-1]], int32."""
        starts = np.repeat(self.offsets[:-1], self.lengths)
        return (np.arange(len(self.candidate_rows)) - starts + 1).astype(np.int32)


class Index(Protocol):
    """Anything that finds the candidates with the largest inner products."""

    @property
    def num_candidates(self) -> int:
        """Give C."""
        ...

    @property
    def dim(self) -> int:
        """Give D."""
        ...

    def search(
        self,
        query_vectors: NDArray[np.float32],
        k: int,
        *,
        exclude: Ragged | None = None,
        allowed: NDArray[Any] | Ragged | None = None,
    ) -> Hits:
        """Find the k candidates of largest score for each query.

        The score is the inner product; of a query with several interests the largest over them.

        Args:
            query_vectors: [B, D], or [B, M, D] with M interests a query; float32, finite.
            k: At least 1; may exceed C, the lists are then shorter.
            exclude: B lists of rows that a query must not get. A row beyond the catalogue
                excludes nothing.
            allowed: The only rows that may be given: one rising array for all queries, or B lists.
                A row beyond the catalogue allows nothing.

        Returns:
            The hits of B queries. They do not depend on how queries are batched or on threads.

        Raises:
            ShapeError: The query vectors are neither [B, D] nor [B, M, D], or M is 0.
            ArgumentError: ``k`` is below 1, a value is not finite, a list of rows has the wrong
                length or a negative row, or ``allowed`` does not rise.
        """
        ...
