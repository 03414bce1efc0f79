"""How often the loader emits a candidate, from counts in a sketch of fixed size.

Dimensions: B positives in a step, M hash tables, H buckets each, C candidates in the catalogue.
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from recsys.foundations import (
    ArgumentError,
    FormatError,
    check_count,
    check_positive,
    check_shape,
)
from recsys.sampling.draw import check_rows
from recsys.sampling.hashing import Hashing, places_in_tables
from recsys.sampling.saved_state import check_state_like
from recsys.sampling.take import take
from recsys.sampling.unique_rows import unique_rows


class CountMinPopularity:
    """Estimate rates by counts of all positives so far, in M x H counters instead of C.

    An item's count is the smallest of its M counters: never below the true one, and above it only
    where the item meets others in every table. A step raises a counter no further than that bound
    demands (conservative update), which keeps rare items apart from frequent ones. After n
    positives, with `initial_count` c, the rate of one draw is ``(count + c) / (n + c C)``.

    All of the past counts alike: right for a log that is read in shuffled order, where the estimate
    ends at the exact rate; `StreamingPopularity` is the one that follows a change. A step costs
    O(M B + B log B), whatever H and C are.

    Args:
        hashing: M functions from candidates to buckets; one table with a bucket for each candidate
            makes the counts exact.
        initial_count: Above 0: every item's count before the first step, so that a positive has a
            rate before it was seen.
        num_candidates: C.

    Raises:
        ArgumentError: `initial_count` or `num_candidates` is not above 0, or their product is not
            finite.

    Source:
        "An improved data stream summary: the count-min sketch and its applications", Journal of
        Algorithms 2005; conservative update in "New directions in traffic measurement and
        accounting", SIGCOMM 2002. Differs: all items of a step are raised at once.
    """

    def __init__(self, hashing: Hashing, *, initial_count: float, num_candidates: int) -> None:
        check_positive("initial_count", initial_count)
        check_count("num_candidates", num_candidates)
        if not math.isfinite(initial_count * num_candidates):
            raise ArgumentError(
                "`initial_count` * `num_candidates` must be finite, "
                f"got {initial_count} * {num_candidates}."
            )
        self._hashing, self._initial_count = hashing, initial_count
        self._num_candidates, self._num_positives = num_candidates, 0
        shape = (hashing.num_tables, hashing.num_buckets)
        self._counts = torch.zeros(shape, dtype=torch.int64)

    def count(self, rows: Tensor) -> Tensor:
        """Give the count of each row so far, or more: as `rows`, int64.

        Raises:
            ArgumentError: A row is not in the catalogue.
        """
        check_rows("rows", rows, self._num_candidates)
        places = places_in_tables(self._hashing, rows)
        # `amin` of integers takes a hundred times as long as `min`.
        return take(self._counts.view(-1), places).min(dim=0).values

    def log_rate(self, rows: Tensor, num_positives: float) -> Tensor:
        """Give the log of the expected count among that many positives: as `rows`, float64."""
        total = self._num_positives + self._initial_count * self._num_candidates
        log_count = math.log(num_positives) if num_positives > 0 else -math.inf
        log_share = (self.count(rows).double() + self._initial_count).log() - math.log(total)
        return log_share + log_count

    def update(self, positive_rows: Tensor) -> None:
        """Count a step's positives, once a step and after their use: [B], int64."""
        check_shape("positive_rows", positive_rows, None)
        rows, occurrences = unique_rows(positive_rows)
        floor = self.count(rows) + occurrences  # what every counter of the item must reach
        for counts, buckets in zip(self._counts, self._hashing.buckets(rows), strict=True):
            counts.scatter_reduce_(0, buckets, floor, reduce="amax")
        self._num_positives += len(positive_rows)

    def state_dict(self) -> dict[str, Tensor]:
        """Give the counters [M, H], the positives so far, and the hashing."""
        return {
            "num_positives": torch.tensor(self._num_positives),
            "counts": self._counts.clone(),
            "hashing": self._hashing.identity(),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up the state; the counts then go on as if they had not stopped.

        Raises:
            FormatError: The state is of another size or hashing.
        """
        check_state_like(state, self.state_dict())
        if not torch.equal(state["hashing"], self._hashing.identity()):
            raise FormatError("`hashing` of the checkpoint's state must be that of this estimate.")
        self._num_positives = int(state["num_positives"])
        self._counts = state["counts"].clone()
