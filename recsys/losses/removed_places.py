"""What leaves a matrix of logits, found once for all of its blocks.

Dimensions: B queries, T positives a query, K candidates; b and k of a block.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from recsys.losses.blocks import Blocks
from recsys.losses.removal import Removal

_MOST_HITS = 2**20  # more are found block by block, by comparing all with all


class RemovedPlaces:
    """Puts -inf where a candidate leaves a query's row.

    On a CPU accidental hits are listed once, as they are few: comparing each positive with each
    candidate costs as much as the softmax. (On a device the length of the list would have to be
    waited for, and comparing is cheap.)

    Args:
        removal: What leaves.
        batch: B.
        num_candidates: K.
    """

    def __init__(self, removal: Removal, batch: int, num_candidates: int) -> None:
        self._removal, self._batch, self._num_candidates = removal, batch, num_candidates

    @cached_property
    def _hits(self) -> "_Hits | None":
        return _find_hits(self._removal, self._batch)

    def prepare(self) -> None:
        """Find once what all blocks need, before several threads ask for it."""
        _ = self._removal.is_empty or self._hits

    def find(self) -> Tensor | None:
        """Find what leaves: [B, K], bool; None: nothing does."""
        if self._removal.is_empty:
            return None
        return self._removal.find(slice(0, self._batch), slice(0, self._num_candidates))

    def fill(self, logits: Tensor, rows: slice, columns: slice) -> None:
        """Put -inf into a block [b, k] of logits where a candidate leaves."""
        if self._removal.is_empty:
            return
        # -inf, not a large negative number: a hit must get a gradient of exactly zero.
        nothing = float("-inf")
        if self._hits is None:
            logits.masked_fill_(self._removal.find(rows, columns), nothing)
            return
        logits[self._hits.within(rows, columns)] = nothing
        if self._removal.own_columns is not None:
            places = self._removal.own_columns[rows] - columns.start
            inside = ((places >= 0) & (places < logits.shape[1])).nonzero().squeeze(1)
            logits[inside, places[inside]] = nothing
        if self._removal.considered is not None:
            logits.masked_fill_(self._removal.considered[rows, columns].logical_not(), nothing)

    def count_left(self) -> Tensor:
        """Count the candidates that stay in each query's row: [B], int64."""
        if self._hits is not None and self._removal.considered is None and self._num_candidates:
            return self._num_candidates - self._hits.count(self._removal.own_columns)
        counts = self._removal.candidate_rows.new_zeros(self._batch, dtype=torch.int64)
        for rows, columns in Blocks(256, 4096).over(slice(0, self._batch), self._num_candidates):
            counts[rows] += self._removal.find(rows, columns).logical_not_().sum(dim=1)
        return counts


@dataclass(frozen=True)
class _Hits:
    """Places of accidental hits, by row.

    Attributes:
        rows: [n], int64, not falling.
        columns: [n], int64.
        starts: [B + 1], int64; where each row's begin.
        num_candidates: K.
    """

    rows: Tensor
    columns: Tensor
    starts: Tensor
    num_candidates: int

    def within(self, rows: slice, columns: slice) -> tuple[Tensor, Tensor]:
        """Give the places in a block, counted from its corner."""
        some = slice(int(self.starts[rows.start]), int(self.starts[rows.stop]))
        at_rows, at_columns = self.rows[some] - rows.start, self.columns[some]
        if columns != slice(0, self.num_candidates):
            inside = (at_columns >= columns.start) & (at_columns < columns.stop)
            at_rows, at_columns = at_rows[inside], at_columns[inside] - columns.start
        return at_rows, at_columns

    def count(self, own_columns: Tensor | None) -> Tensor:
        """Count the different places in each row, own columns among them: [B]."""
        batch = len(self.starts) - 1
        codes = self.rows * self.num_candidates + self.columns
        if own_columns is not None:
            own = torch.arange(batch) * self.num_candidates + own_columns
            codes = torch.cat([codes, own])
        return torch.bincount(codes.unique() // max(self.num_candidates, 1), minlength=batch)


def _find_hits(removal: Removal, batch: int) -> _Hits | None:
    """Find where a candidate is a positive of the row; None where that is not worth a list."""
    candidate_rows, positive_rows = removal.candidate_rows, removal.positive_rows
    if candidate_rows.device.type != "cpu" or candidate_rows.dim() == 2:
        return None
    num_candidates = len(candidate_rows)
    if positive_rows is None or num_candidates == 0:
        nothing = candidate_rows.new_zeros(0, dtype=torch.int64)
        return _Hits(nothing, nothing, nothing.new_zeros(batch + 1), num_candidates)
    sorted_rows, order = candidate_rows.long().sort()
    distinct, repeats = torch.unique_consecutive(sorted_rows, return_counts=True)
    positives = positive_rows.long().reshape(-1)  # [B T]
    places = torch.searchsorted(distinct, positives).clamp_(max=len(distinct) - 1)
    counts = repeats[places] * (distinct[places] == positives)
    firsts = (repeats.cumsum(dim=0) - repeats)[places]
    if int(counts.sum()) > _MOST_HITS:
        return None
    owners = torch.repeat_interleave(counts)  # [n], in [0, B T)
    steps = torch.arange(len(owners)) - (counts.cumsum(dim=0) - counts)[owners]
    num_positives = positive_rows.shape[1] if positive_rows.dim() == 2 else 1
    by_row = counts.reshape(batch, num_positives).sum(dim=1)
    starts = torch.cat([counts.new_zeros(1), by_row.cumsum(dim=0)])
    return _Hits(owners // num_positives, order[firsts[owners] + steps], starts, num_candidates)
