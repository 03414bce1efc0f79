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
        self._sums = {name: torch.zeros(2, dtype=torch.float64) for name in names}  # value, count

    def add(self, **values: Tensor | float) -> None:
        """Add one value a row of a batch ([B], any dtype), or one number for a step."""
        for name, value in values.items():
            if isinstance(value, Tensor):  # in float64: the sum over a batch may pass 2^24
                total, count = float(value.detach().cpu().double().sum()), value.numel()
            else:
                total, count = float(value), 1
            self._sums[name] += torch.tensor([total, count], dtype=torch.float64)

    def start_epoch(self) -> None:
        """Forget all."""
        for sums in self._sums.values():
            sums.zero_()

    def means(self) -> dict[str, float]:
        """Give the mean of each quantity that something was added to."""
        sums = {name: pair.tolist() for name, pair in self._sums.items()}
        return {name: total / count for name, (total, count) in sums.items() if count > 0}

    def state_dict(self) -> dict[str, Tensor]:
        """Give the sum and the number of values of each quantity: [2]."""
        return {name: sums.clone() for name, sums in self._sums.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up the sums.

        Raises:
            FormatError: They are of other quantities.
        """
        if state.keys() != self._sums.keys() or any(v.shape != (2,) for v in state.values()):
            raise FormatError(
                f"The checkpoint's loss must hold the statistics {', '.join(self._sums)}, "
                f"got {', '.join(state) or 'none'}."
            )
        self._sums = {name: state[name].to(torch.float64).clone() for name in self._sums}
