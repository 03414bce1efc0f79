"""Which candidates leave which query's denominator."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Removal:
    """Candidates that leave a query's row: accidental hits, its own column, what a mask names.

    Attributes:
        candidate_rows: [K], shared by the queries, or [B, K]; int64.
        positive_rows: [B] or [B, T], int64; a candidate with one of these rows leaves. None: none
            does.
        own_columns: [B], int64; a column that leaves in any case. None: no such columns.
        considered: [B, K], bool; False leaves in any case. None: all are considered.
    """

    candidate_rows: Tensor
    positive_rows: Tensor | None
    own_columns: Tensor | None
    considered: Tensor | None = None

    @property
    def is_empty(self) -> bool:
        """Say whether nothing ever leaves."""
        return self.positive_rows is None and self.own_columns is None and self.considered is None

    def find(self, rows: slice, columns: slice) -> Tensor:
        """Find what leaves in one block of queries and candidates: [b, k], bool."""
        candidate_rows = self.candidate_rows[..., columns]
        if candidate_rows.dim() == 2:
            candidate_rows = candidate_rows[rows]  # [b, k]
        shape = (rows.stop - rows.start, columns.stop - columns.start)
        if self.positive_rows is None:
            found = torch.zeros(shape, dtype=torch.bool, device=candidate_rows.device)
        else:
            positive_rows = self.positive_rows[rows]
            several = positive_rows if positive_rows.dim() == 2 else positive_rows[:, None]
            first, *others = several.unbind(dim=1)  # T is small, and [b, T, k] is not
            found = first[:, None] == candidate_rows
            for other in others:
                found |= other[:, None] == candidate_rows
        if self.considered is not None:
            found |= self.considered[rows, columns].logical_not()
        if self.own_columns is not None and shape[1] > 0:
            places = self.own_columns[rows, None] - columns.start  # [b, 1]
            inside = places.clamp(0, shape[1] - 1)
            found.scatter_(1, inside, found.gather(1, inside) | (inside == places))
        return found
