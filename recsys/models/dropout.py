"""Dropout that does not wait for its random numbers."""

import torch
from torch import Tensor, nn

_STEPS = 1 << 16  # a share is rounded to one of these


class Dropout(nn.Module):
    """Set a share of the values to zero in training, and scale the others to keep the mean.

    On a CPU torch's own draws a number for each value, which takes longer than the layers of a
    narrow network around it. Here one draw of 64 bits decides on four values.

    Args:
        share: Of the values set to zero, in [0, 1).
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, values: Tensor) -> Tensor:
        """Drop values of any shape."""
        dropped = round(self.share * _STEPS)
        if not self.training or dropped == 0:
            return values
        draws = torch.empty(values.numel() // 4 + 1, dtype=torch.int64, device=values.device)
        draws.random_(torch.iinfo(torch.int64).min, None)
        parts = draws.view(torch.int16)[: values.numel()].view_as(values)
        kept = parts >= dropped - _STEPS // 2
        return values * kept.to(values.dtype).mul_(_STEPS / (_STEPS - dropped))
