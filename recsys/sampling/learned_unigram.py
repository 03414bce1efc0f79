"""A unigram that is counted while training, for logs that nobody counted before."""

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from recsys.foundations import FormatError, check_count
from recsys.sampling.count_levels import CountLevels
from recsys.sampling.draw import check_rows
from recsys.sampling.fenwick_tree import FenwickTree
from recsys.sampling.saved_state import check_state_like
from recsys.sampling.take import take
from recsys.sampling.uniform_integers import uniform_integers


class LearnedUnigramProposal:
    """Every candidate with chance ``count / sum``; a count is 1 + the positives seen so far.

    A step's draw uses the counts from before the step. Counts and probabilities are exact. A draw
    costs O(log C), an update of B positives O(B log C), by a Fenwick tree of 16 to 24 bytes a
    candidate; the alias table's O(1) would cost O(C) at every step, as it has to be built anew.
    Nor does a sum over the catalogue visit it: it goes over the different counts (`CountLevels`).

    Args:
        num_candidates: C, at least 1.

    Raises:
        ArgumentError: It is below 1.

    Source:
        The learned-unigram candidate sampler of TensorFlow.
    """

    def __init__(self, num_candidates: int) -> None:
        check_count("num_candidates", num_candidates)
        self.num_candidates = num_candidates
        self._tree = FenwickTree(np.ones(num_candidates, dtype=np.int64))
        self._levels = CountLevels(np.array([1]), np.array([num_candidates]))

    def draw(self, num_draws: int, generator: torch.Generator) -> Tensor:
        """Draw with replacement: [num_draws], int64."""
        targets = uniform_integers(self._tree.total, num_draws, generator)
        return torch.from_numpy(self._tree.find(targets.numpy()))

    def log_probability(self, rows: Tensor) -> Tensor:
        """Give the log probability by the counts so far: as `rows`, float64, always finite."""
        check_rows("rows", rows, self.num_candidates)
        return self._of_counts(take(torch.from_numpy(self._tree.values), rows))

    def levels(self) -> tuple[Tensor, Tensor]:
        """Give the log probability of each different count, and how many have it: [K] and [K]."""
        counts, numbers = map(torch.from_numpy, (self._levels.counts, self._levels.numbers))
        return self._of_counts(counts), numbers

    def _of_counts(self, counts: Tensor) -> Tensor:
        return counts.double().log() - math.log(self._tree.total)

    def update(self, positive_rows: Tensor) -> None:
        """Count a step's positives: [B], int64; each occurrence adds 1."""
        check_rows("positive_rows", positive_rows, self.num_candidates)
        rows, occurrences = np.unique(positive_rows.numpy(), return_counts=True)
        before = self._tree.values[rows]
        self._tree.add(rows, occurrences)
        self._levels.move(before, before + occurrences)

    def state_dict(self) -> dict[str, Tensor]:
        """Give the counts: [C], int64; a copy."""
        return {"counts": torch.from_numpy(self._tree.values.copy())}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up the counts; O(C log C).

        Raises:
            FormatError: They are those of another catalogue, or not counts that began at 1.
        """
        check_state_like(state, self.state_dict())
        counts = state["counts"]
        if (counts < 1).any():
            raise FormatError(
                f"`counts` of the checkpoint's state must be at least 1, got {int(counts.min())}."
            )
        self._tree = FenwickTree(counts.numpy())
        self._levels = CountLevels(*np.unique(counts.numpy(), return_counts=True))
