"""One update of the parameters, down the weighted mean of a batch's losses."""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from recsys.training.coalesced import coalesce_gradients
from recsys.training.gradient_clipping import clip_gradients
from recsys.training.schedules import set_learning_rates

_TINY = float(torch.finfo(torch.float32).tiny)


def update(
    model: nn.Module,
    optimizers: Sequence[Optimizer],
    total: Tensor,
    weight_sum: Tensor,
    *,
    rate_share: float,
    gradient_clip: float,
) -> None:
    """Take one step.

    Args:
        model: Whose parameters are clipped together.
        optimizers: Over all of its parameters; their gradients are empty before and after.
        total: Sum of the weighted losses, finite.
        weight_sum: Sum of the weights; of a batch without weight nothing is learned.
        rate_share: Share of the learning rates at this step.
        gradient_clip: Largest norm over all gradients; 0: none.
    """
    torch.autograd.backward(total / weight_sum.clamp(min=_TINY))
    of_all = [group["params"] for optimizer in optimizers for group in optimizer.param_groups]
    coalesce_gradients(itertools.chain.from_iterable(of_all))
    if gradient_clip > 0:
        clip_gradients(model.parameters(), gradient_clip)
    set_learning_rates(list(optimizers), rate_share)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
