"""Pairs of a query and a candidate that may stand among the best of the query.

Dimensions: P pairs.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Pairs:
    """Pairs that may stand among the best.

    Attributes:
        owners: [P], the query.
        rows: [P].
        scores: [P], no further than `slack` from the score of `score_pairs`.
        slack: [P]; 0 where it is that score.
    """

    owners: NDArray[np.uint16]
    rows: NDArray[np.int64]
    scores: NDArray[np.float32]
    slack: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, places: NDArray[np.int64]) -> Self:
        """Take pairs by place, in the order given."""
        owners, rows = self.owners[places], self.rows[places]
        return type(self)(owners, rows, self.scores[places], self.slack[places])

    @classmethod
    def join(cls, parts: list["Pairs"]) -> Self:
        """Put parts behind one another."""
        return cls(
            np.concatenate([np.zeros(0, np.uint16), *(part.owners for part in parts)]),
            np.concatenate([np.zeros(0, np.int64), *(part.rows for part in parts)]),
            np.concatenate([np.zeros(0, np.float32), *(part.scores for part in parts)]),
            np.concatenate([np.zeros(0, np.float32), *(part.slack for part in parts)]),
        )
