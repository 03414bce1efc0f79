"""Whole numbers that are all alike likely, whatever their limit."""

import torch
from torch import Tensor

_ENOUGH_FOR_32_BITS = 1 << 16
_BITS_63 = torch.iinfo(torch.int64).max


def uniform_integers(limit: int, num_draws: int, generator: torch.Generator) -> Tensor:
    """Draw from [0, limit) with replacement: [num_draws], int64.

    `torch.randint` takes the remainder of 32 random bits, up to a limit of 2^28: some numbers then
    come more often than others, by ``limit / 2^32``, which is 6 % at the end of that range. With 63
    bits it is ``limit / 2^63``. Up to a limit of 2^16, 32 bits do: they are off by 2^-16 at most.

    Args:
        limit: At least 1.
        num_draws: Not negative.
        generator: The only source of randomness.
    """
    if limit <= _ENOUGH_FOR_32_BITS:
        return torch.randint(limit, (num_draws,), generator=generator)
    return torch.randint(_BITS_63, (num_draws,), generator=generator) % limit
