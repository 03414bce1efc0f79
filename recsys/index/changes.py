"""What changed since the main index was built: vectors put in its place or added, rows withdrawn.

Dimensions: N candidates of the main index, C of the catalogue after the changes, n changed and w
withdrawn rows, D embedding width.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recsys.foundations import ArgumentError, check_shape
from recsys.index.scoring import check_finite


@dataclass(frozen=True)
class Changes:
    """What changed since the main index was built.

    Attributes:
        rows: [n], int64, rising: rows whose vector stands in `vectors`, either in place of the main
            index's or because the main index lacks them.
        vectors: [n, D], float32, finite.
        withdrawn: [w], int64, rising: rows that are never given; their vectors stay addressable.
        num_candidates: C, at least N; every row from N to C stands in `rows`.

    Raises:
        ShapeError: There is not one vector a row.
        ArgumentError: Rows do not rise or lie outside [0, C), or the vectors are not finite
            float32.
    """

    rows: NDArray[np.int64]
    vectors: NDArray[np.float32]
    withdrawn: NDArray[np.int64]
    num_candidates: int

    def __post_init__(self) -> None:
        check_shape("rows", self.rows, None)
        check_shape("withdrawn", self.withdrawn, None)
        check_shape("vectors", self.vectors, len(self.rows), None)
        check_rows("`rows`", self.rows, self.num_candidates)
        check_rows("`withdrawn`", self.withdrawn, self.num_candidates)
        if self.vectors.dtype != np.float32:
            raise ArgumentError(f"`vectors` must be float32, got {self.vectors.dtype}.")
        check_finite("vectors", self.vectors)

    @classmethod
    def none(cls, num_candidates: int, dim: int) -> Self:
        """Make the changes of an index that has none."""
        nothing = np.zeros(0, np.int64)
        return cls(nothing, np.zeros((0, dim), np.float32), nothing, num_candidates)

    def check_fits(self, main_count: int, dim: int) -> None:
        """Check that these are changes of an index of N candidates of width D.

        Raises:
            ShapeError: The width is another.
            ArgumentError: There are fewer candidates than in the index, or a row from N to C has no
                vector.
        """
        check_shape("vectors", self.vectors, len(self.rows), dim)
        if self.num_candidates < main_count:
            raise ArgumentError(
                f"`num_candidates` must be at least the {main_count} of the main index, got "
                f"{self.num_candidates}."
            )
        # Rows are distinct and below C, so that their number tells.
        added = len(self.rows) - int(np.searchsorted(self.rows, main_count))
        if added != self.num_candidates - main_count:
            raise ArgumentError(
                f"`rows` must hold every row from {main_count} to {self.num_candidates - 1}, which "
                f"the main index lacks; it holds {added} of them."
            )


def check_rows(name: str, rows: NDArray[Any], num_candidates: int) -> None:
    """Check that rows [n] are int64, rise, and lie in [0, C).

    Raises:
        ArgumentError: They do not; the message begins with the name.
    """
    if rows.dtype != np.int64:
        raise ArgumentError(f"{name} must hold int64, got {rows.dtype}.")
    if not (rows[1:] > rows[:-1]).all():
        raise ArgumentError(f"{name} must hold rising rows.")
    if len(rows) and (rows[0] < 0 or rows[-1] >= num_candidates):
        raise ArgumentError(
            f"{name} must hold rows from 0 to {num_candidates - 1}, got {rows[0]} to {rows[-1]}."
        )
