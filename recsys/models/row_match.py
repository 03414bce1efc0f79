"""Which row of an old table each row of a new one goes on from.

Dimensions: N rows of the new table, M of the old one, D width.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recsys.data import FeatureSpec, Vocabulary


@dataclass(frozen=True)
class RowMatch:
    """Where the rows of a new table stood in an old one.

    Attributes:
        old_rows: [N], int64; -1: it was not there.
        num_dropped: Old rows that no new one goes on from.
    """

    old_rows: NDArray[np.int64]
    num_dropped: int

    @property
    def num_kept(self) -> int:
        """Give the new rows that stood in the old table."""
        return int((self.old_rows >= 0).sum())

    @property
    def num_new(self) -> int:
        """Give the new rows that did not."""
        return len(self.old_rows) - self.num_kept

    def counts(self) -> dict[str, int]:
        """Give `kept`, `new` and `dropped`."""
        return {"kept": self.num_kept, "new": self.num_new, "dropped": self.num_dropped}


def match_ids(
    ids: Vocabulary, old_ids: Vocabulary, *, num_rows: int, learned: NDArray[np.bool_]
) -> RowMatch:
    """Match rows by id.

    Args:
        ids: Of the new rows; those from `num_rows` on have no vector.
        old_ids: Of the old rows; those from M on had no vector.
        num_rows: N.
        learned: [M], whether training gave the old row a vector of its own. One without is as good
            as not there.
    """
    found = old_ids.rows(ids.ids.slice(0, num_rows))
    there = (found >= 0) & (found < len(learned))
    there[there] = learned[found[there]]
    return RowMatch(np.where(there, found, -1), int(learned.sum() - there.sum()))


def match_values(spec: FeatureSpec, old: FeatureSpec) -> NDArray[np.int64]:
    """Match the rows of two categories' or lists' tables by value.

    Returns:
        [N], int64, the old row; for a value that the old table lacks row 0, which stood for it.
    """
    found = Vocabulary(old.value_set).rows(spec.value_set)
    return np.concatenate([[0], 1 + found]).astype(np.int64)  # -1: row 0


def match_buckets(spec: FeatureSpec, old: FeatureSpec) -> NDArray[np.int64]:
    """Match the rows of two tables of buckets: each new one by the old one its middle falls in.

    The outermost buckets are open; one as wide as its neighbour stands for each.

    Returns:
        [N], int64, the old row; row 0, of missing values, by itself.
    """
    edges = np.array(spec.edges, np.float64)
    if len(edges) == 0:  # one bucket, which holds everything
        return np.arange(spec.size, dtype=np.int64)
    widths = np.diff(edges) if len(edges) > 1 else np.zeros(1)
    below = edges[0] - max(widths[0] / 2, np.spacing(abs(edges[0])))
    inner = (edges[:-1] + edges[1:]) / 2
    middles = np.concatenate([[below], inner, [edges[-1] + widths[-1] / 2]])
    rows = 1 + np.searchsorted(np.array(old.edges, np.float64), middles, side="right")
    return np.concatenate([[0], rows]).astype(np.int64)


def copy_rows(new: Tensor, old: Tensor, old_rows: NDArray[np.int64], default: Tensor) -> None:
    """Overwrite a table by rows of another.

    Args:
        new: [N, D]; on any device.
        old: [M, D].
        old_rows: [N], -1: the default.
        default: [D].
    """
    rows = torch.from_numpy(old_rows)
    there = rows >= 0
    new.copy_(default.to(new).expand_as(new))
    new[there.to(new.device)] = old[rows[there].to(old.device)].to(new)
