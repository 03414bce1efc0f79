"""The number that divides scores before the softmax: fixed, or learned between bounds."""

import math

import torch
from torch import Tensor, nn

from recsys.foundations import check_positive


class FixedTemperature(nn.Module):
    """A temperature that stays.

    Args:
        value: Above 0.
    """

    value: Tensor

    def __init__(self, value: float) -> None:
        super().__init__()
        check_positive("temperature", value)
        self.register_buffer("value", torch.tensor(value, dtype=torch.float32))

    def forward(self) -> Tensor:
        """Give the temperature: a scalar."""
        return self.value


class LearnedTemperature(nn.Module):
    """A temperature that is learned strictly between two bounds.

    T = low · (high / low)^sigmoid(p) with the parameter p. Near a bound the gradient shrinks but
    never vanishes, so training cannot get stuck there as it can behind a hard clamp.

    Args:
        value: Where it starts, strictly between the bounds.
        low: The lower bound, above 0.
        high: The upper bound.
    """

    def __init__(self, value: float, *, low: float, high: float) -> None:
        super().__init__()
        self._log_low, self._log_range = math.log(low), math.log(high / low)
        share = (math.log(value) - self._log_low) / self._log_range
        self.position = nn.Parameter(torch.tensor(math.log(share / (1 - share))))

    def forward(self) -> Tensor:
        """Give the temperature: a scalar."""
        return torch.exp(self._log_low + self._log_range * torch.sigmoid(self.position))
