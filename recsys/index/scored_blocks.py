"""The float32 products of some queries with the catalogue, a block of candidates at a time.

Dimensions: B queries, M interests of a query, C candidates, n of them a block, D embedding width.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys.index.row_filter import RowFilter
from recsys.index.scoring import take_rows

PADDED_TO = 16  # rows of a block's scores
_SCORES_AT_ONCE = 1 << 21  # 8 MiB
_NUMBERS_AT_ONCE = 1 << 22  # of the candidates' vectors
_FEWEST, _FIRST = 1024, 4096  # candidates of a block, of the first one


@dataclass(frozen=True)
class ScoredBlock:
    """Float32 inner products with the next candidates.

    Attributes:
        scores: [n', B], float32, in C order; n' is n, rounded up to a multiple of 16; -inf marks
            what may not be given, and the rows beyond n. Is written to.
        rows: [n], int64, rising, above those of earlier blocks.
        vectors: [n, D], float32.
        norms: [n], float32, lengths of the vectors, rounded up.
    """

    scores: NDArray[np.float32]
    rows: NDArray[np.int64]
    vectors: NDArray[np.float32]
    norms: NDArray[np.float32]


def scored_blocks(
    queries: NDArray[np.float32],
    vectors: NDArray[np.float32],
    norms: NDArray[np.float32],
    row_filter: RowFilter,
) -> Iterator[ScoredBlock]:
    """Score all candidates that may be given; their rows rise from block to block.

    The buffers of a block are those of the next one. They hold 2 million scores (of each interest)
    and, where rows are chosen, 4 million numbers of vectors; or what 1,024 candidates need.

    Args:
        queries: [B, M, D].
        vectors: [C, D].
        norms: [C], lengths of the vectors, rounded up.
        row_filter: Of these queries; without a list of allowed rows for each.
    """
    num_queries, num_interests, dim = queries.shape
    flat = queries.swapaxes(0, 1).reshape(num_interests * num_queries, dim)  # [M * B, D]
    allowed = row_filter.allowed_rows
    num_candidates = len(vectors) if allowed is None else len(allowed)
    size = _block_size(len(flat), dim, num_candidates)
    buffer = np.empty((size, len(flat)), np.float32)
    gathered = np.empty((0 if allowed is None else size, dim), np.float32)
    excluded = _Excluded(row_filter)
    stop = 0
    while stop < num_candidates:
        start, stop = stop, min(stop + (min(size, _FIRST) if stop == 0 else size), num_candidates)
        if allowed is None:
            rows, chosen = np.arange(start, stop), vectors[start:stop]
        else:
            rows = allowed[start:stop]
            chosen = take_rows(vectors, rows, gathered[: len(rows)])
        scores = buffer[: _padded(len(rows))]
        np.matmul(chosen, flat.T, out=scores[: len(rows)])
        scores[len(rows) :] = -np.inf
        if num_interests > 1:
            scores = scores.reshape(-1, num_interests, num_queries).max(axis=1)
        if allowed is None and row_filter.hidden is not None:
            scores[: len(rows)][row_filter.hidden.mask[start:stop]] = -np.inf
        excluded.mark(scores, rows)
        yield ScoredBlock(scores, rows, chosen, norms[rows])


class _Excluded:
    """The excluded pairs by row, so that those of a block stand together."""

    def __init__(self, row_filter: RowFilter) -> None:
        exclude = row_filter.exclude
        self._num_queries = len(exclude)
        self._keys = np.sort(exclude.rows.astype(np.int64) * len(exclude) + exclude.owners())

    def mark(self, scores: NDArray[np.float32], rows: NDArray[np.int64]) -> None:
        """Write -inf to the excluded scores [n', B] of those rows [n]."""
        ends = np.array([rows[0], rows[-1] + 1]) * self._num_queries
        low, high = np.searchsorted(self._keys, ends)
        if low == high:
            return
        excluded, queries = np.divmod(self._keys[low:high], self._num_queries)
        columns = excluded - rows[0]
        if rows[-1] - rows[0] >= len(rows):  # gaps
            columns = np.searchsorted(rows, excluded)
            there = rows[columns] == excluded
            columns, queries = columns[there], queries[there]
        scores[columns, queries] = -np.inf


def _block_size(num_vectors: int, dim: int, num_candidates: int) -> int:
    largest = min(_SCORES_AT_ONCE // num_vectors, _NUMBERS_AT_ONCE // max(dim, 1))
    return _padded(min(max(largest, _FEWEST), num_candidates))


def _padded(num_candidates: int) -> int:
    return -(-num_candidates // PADDED_TO) * PADDED_TO
