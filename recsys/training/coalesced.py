"""Sparse gradients that hold each row once."""

from collections.abc import Iterable

import torch
from torch import Tensor


@torch.no_grad()
def coalesce_gradients(params: Iterable[Tensor]) -> None:
    """Let every sparse gradient hold each row once, the rows rising.

    Those of embedding tables are made so, but on its way into the parameter a gradient loses the
    mark that says it, without which every optimiser sorts it anew.

    Args:
        params: Parameters; those without a gradient, or with a dense one, are passed over.
    """
    for param in params:
        gradient = param.grad
        if gradient is None or not gradient.is_sparse or gradient.is_coalesced():
            continue
        if _rows_rise(gradient):
            gradient._coalesced_(True)
        else:
            param.grad = gradient.coalesce()


def _rows_rise(gradient: Tensor) -> bool:
    rows = gradient._indices()
    return len(rows) == 1 and bool((rows[0, 1:] > rows[0, :-1]).all())
