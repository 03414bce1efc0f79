"""The matrix product of rows with rows, by the faster of torch's two libraries."""

import functools
import platform
from typing import Any

import torch
from torch import Tensor

_WORTHWHILE = 2**20  # multiplications; below, the call of the operator takes longer than MKL does


def linear(left: Tensor, right: Tensor, offsets: Tensor | None = None) -> Tensor:
    """Compute ``left @ right.T + offsets``; no gradient flows through it.

    Of the two libraries in torch's CPU builds `torch.mm` takes float32 to MKL, which runs at half
    the rate of oneDNN on processors that are not Intel's. oneDNN prepares each new combination of
    sizes, in about a quarter of a millisecond, and keeps a thousand of them.

    Args:
        left: [n, d], any float.
        right: [m, d], same dtype and device; it may be a transposed view.
        offsets: [m], likewise. None: nothing is added.

    Returns:
        [n, m].
    """
    if left.numel() * len(right) >= _WORTHWHILE and has_fast_linear(left):
        # oneDNN reads one offset behind the other, whatever their strides.
        dense = None if offsets is None else offsets.contiguous()
        product: Tensor = _onednn_linear()(left, right, dense, "none", [], "")
        return product
    return left @ right.T if offsets is None else torch.addmm(offsets, left, right.T)


def has_fast_linear(values: Tensor) -> bool:
    """Tell whether products of such values go to oneDNN."""
    on_cpu = values.device.type == "cpu" and values.dtype == torch.float32
    return on_cpu and values.numel() > 0 and _has_onednn()


@functools.cache
def _has_onednn() -> bool:
    on_x86 = platform.machine().lower() in ("x86_64", "amd64")
    # This operator is what torch.compile emits.
    has_operator = hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return on_x86 and torch.backends.mkldnn.is_available() and has_operator


def _onednn_linear() -> Any:
    return torch.ops.mkldnn._linear_pointwise
