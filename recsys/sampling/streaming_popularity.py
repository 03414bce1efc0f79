"""How often the loader emits a candidate, learned from the stream of batches alone.

Dimensions: B positives in a step, M hash tables, H buckets each.
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from recsys.foundations import ArgumentError, FormatError, check_shape
from recsys.sampling.hashing import Hashing, places_in_tables
from recsys.sampling.saved_state import check_state_like
from recsys.sampling.take import take
from recsys.sampling.unique_rows import unique_rows


class StreamingPopularity:
    """Estimate rates by the steps between two occurrences; no pass over the log is needed.

    Every bucket of a table keeps the step A in which it was last seen and a running mean B of the
    gaps. At step t, each bucket that the batch hits is updated once, however often it is hit::

        B <- (1 - step_size) * B + step_size * (t - A);    A <- t

    so that 1 / B is the chance that the bucket occurs in a step. A third array keeps, likewise, the
    running mean of the share of the batch that the bucket takes in the steps in which it occurs;
    share / B is then the chance that one positive falls into the bucket, right also for an item
    that fills a tenth of every batch, and whatever the sizes of the batches. A bucket adds up the
    items that share it, so of several tables the smallest rate is the closest to the item's own.

    The step size trades noise against speed. With a step size a, the last ``1 / a`` occurrences of
    an item count. A small one leaves little noise (the standard deviation of the log rate is
    about ``sqrt(a / 2)`` for rare items), but takes several times ``1 / a`` occurrences to forget
    `initial_gap` and to follow a change; an item that no longer occurs keeps its last rate. The
    mean of 1 / B exceeds the true rate by a factor of about ``1 + a / 2``.

    A step costs O(M B log(M B)), whatever H and the catalogue are.

    Args:
        hashing: M functions from candidates to buckets.
        step_size: In (0, 1].
        initial_gap: B before the first occurrence, in steps; finite and at least 1, as a gap is; or
            0: an item has no rate before it was seen.
        dtype: Of the running means.

    Raises:
        ArgumentError: `step_size` or `initial_gap` is out of range.

    Source:
        "Sampling-bias-corrected neural modeling for large corpus item recommendations", RecSys
        2019, algorithms 2 and 3. Differs: repeats in a batch are one occurrence, and the share of
        the batch is estimated beside the gap.
    """

    def __init__(
        self,
        hashing: Hashing,
        *,
        step_size: float,
        initial_gap: float,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        if not 0 < step_size <= 1:
            raise ArgumentError(f"`step_size` must be in (0, 1], got {step_size}.")
        if initial_gap != 0 and not 1 <= initial_gap < math.inf:
            raise ArgumentError(
                f"`initial_gap` must be 0, or finite and at least 1, got {initial_gap}."
            )
        shape = (hashing.num_tables, hashing.num_buckets)
        self._hashing, self._step_size = hashing, step_size
        self._step = self._num_positives = 0
        self._last_seen = torch.zeros(shape, dtype=torch.int64)
        self._gap = torch.full(shape, initial_gap, dtype=dtype)
        self._share = torch.zeros(shape, dtype=dtype)  # 0: not seen yet

    def occurrence_probability(self, rows: Tensor) -> Tensor:
        """Give the chance that a step's batch holds each row at least once.

        Args:
            rows: Any shape, int64.

        Returns:
            As `rows`, in the dtype of the means: 1 / the longest gap of the tables, since sharing a
            bucket shortens gaps. Above 1 where the gap is below 1, as it can be for a while after
            an initial gap of 0; nan where it is 0.
        """
        gap = take(self._gap.view(-1), places_in_tables(self._hashing, rows)).amax(dim=0)
        return torch.where(gap > 0, 1 / gap, math.nan)

    def log_rate(self, rows: Tensor, num_positives: float) -> Tensor:
        """Give the log of the expected count among that many positives: as `rows`, float64.

        An item not seen yet is expected once in `initial_gap` steps of the mean size so far. A gap
        below 1 counts as 1: the rate is at most `num_positives`.

        Raises:
            ArgumentError: A row's gap is 0: it was not seen, and `initial_gap` is 0.
        """
        places = places_in_tables(self._hashing, rows)
        gap = take(self._gap.view(-1), places).double()  # [M, *rows.shape]
        if (gap == 0).any():
            raise ArgumentError(
                "`initial_gap` must be above 0 for the rate of items that were not seen yet, got 0."
            )
        share = take(self._share.view(-1), places).double()
        mean_size = self._num_positives / self._step if self._step else num_positives
        share = torch.where(share == 0, 1 / max(mean_size, 1), share)
        gap = gap.clamp(min=1)  # no item occurs more than once a step, whatever the initial gap
        log_count = math.log(num_positives) if num_positives > 0 else -math.inf
        return (share / gap).amin(dim=0).log() + log_count

    def update(self, positive_rows: Tensor) -> None:
        """Take up a step's positives, once a step and after their use: [B], int64."""
        check_shape("positive_rows", positive_rows, None)
        places = places_in_tables(self._hashing, positive_rows)  # [M, B]
        keys, counts = unique_rows(places.flatten())  # each bucket once
        self._step += 1
        self._num_positives += len(positive_rows)

        last_seen, gap, share = (
            array.view(-1) for array in (self._last_seen, self._gap, self._share)
        )
        gaps = (self._step - take(last_seen, keys)).to(gap.dtype)
        gap[keys] = (1 - self._step_size) * take(gap, keys) + self._step_size * gaps
        last_seen[keys] = self._step
        shares = counts.to(share.dtype) / len(positive_rows)
        before = take(share, keys)
        before = torch.where(before == 0, shares, before)
        share[keys] = (1 - self._step_size) * before + self._step_size * shares

    def state_dict(self) -> dict[str, Tensor]:
        """Give the three arrays [M, H], the step, the positives so far, and the hashing."""
        return {
            "step": torch.tensor(self._step),
            "num_positives": torch.tensor(self._num_positives),
            "last_seen": self._last_seen.clone(),
            "gap": self._gap.clone(),
            "share": self._share.clone(),
            "hashing": self._hashing.identity(),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up the state; the estimate then goes on as if it had not stopped.

        Raises:
            FormatError: The state is of another size, dtype or hashing.
        """
        check_state_like(state, self.state_dict())
        if not torch.equal(state["hashing"], self._hashing.identity()):
            raise FormatError("`hashing` of the checkpoint's state must be that of this estimate.")
        self._step, self._num_positives = int(state["step"]), int(state["num_positives"])
        self._last_seen = state["last_seen"].clone()
        self._gap, self._share = state["gap"].clone(), state["share"].clone()
