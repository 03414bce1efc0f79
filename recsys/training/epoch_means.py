"""Means of what an objective does, over the steps of an epoch."""

from collections.abc import Mapping

import torch
from torch import Tensor

from recsys.foundations import FormatError


class EpochMeans:
    """Weighted means by name, which a checkpoint in mid-epoch carries along.

    Args:
        names: The quantities, such as `effective_sample_size`.
    """

    def __init__(self, *names: str) -> None:
        self._names = names
        self._sums = torch.zeros(len(names), 2, dtype=torch.float64)  # of value * count, of count

    def add(self, **values: Tensor | float) -> None:
        """Add one value a row of a batch ([B], any dtype), or one number for a step."""
        for name, value in values.items():
            row = self._sums[self._names.index(name)]
            if isinstance(value, Tensor):
                row += torch.tensor([float(value.double().sum()), value.numel()])
            else:
                row += torch.tensor([float(value), 1.0], dtype=torch.float64)

    def start_epoch(self) -> None:
        """Forget all."""
        self._sums.zero_()

    def means(self) -> dict[str, float]:
        """Give the mean of each quantity that something was added to."""
        totals, counts = self._sums.T.tolist()
        parts = zip(self._names, totals, counts, strict=True)
        return {name: total / count for name, total, count in parts if count > 0}

    def state_dict(self) -> dict[str, Tensor]:
        """Give the sums: {"statistics": [names, 2]}."""
        return {"statistics": self._sums.clone()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up the sums.

        Raises:
            FormatError: They are missing, or of other quantities.
        """
        sums = state.get("statistics")
        if sums is None or sums.shape != self._sums.shape:
            raise FormatError("The checkpoint holds no statistics of this loss.")
        self._sums = sums.to(torch.float64).clone()
