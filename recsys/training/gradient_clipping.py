"""Clip gradients by their norm, sparse ones included."""

from collections.abc import Iterable

import torch
from torch import Tensor

from recsys.foundations import TrainingError, check_positive


@torch.no_grad()
def clip_gradients(params: Iterable[Tensor], max_norm: float) -> float:
    """Scale all gradients together so that their joint L2 norm is at most `max_norm`.

    Repeats of a row in a sparse gradient are added up first: the norm is that of the gradient, not
    of its parts.

    Args:
        params: Parameters; those without a gradient are passed over.
        max_norm: Above 0.

    Returns:
        The norm before clipping; 0 without any gradient.

    Raises:
        ArgumentError: `max_norm` is not above 0.
        TrainingError: The norm is not finite.
    """
    check_positive("max_norm", max_norm)
    values = []
    for param in params:
        if param.grad is None:
            continue
        if param.grad.is_sparse:
            param.grad = param.grad.coalesce()
            values.append(param.grad.values())
        else:
            values.append(param.grad)
    if not values:
        return 0.0
    norms = [torch.linalg.vector_norm(value, dtype=torch.float32) for value in values]
    norm = float(torch.linalg.vector_norm(torch.stack([n.to(norms[0].device) for n in norms])))
    if not norm < float("inf"):  # also refuses NaN
        raise TrainingError(f"The gradient's norm must be finite, got {norm}.")
    if norm > max_norm:
        for value in values:
            value.mul_(max_norm / norm)
    return norm
