"""Directions in which vectors have nothing in common.

Dimensions: R rows, K factors.
"""

import torch
from torch import Tensor


def principal_axes(factors: Tensor) -> Tensor:
    """Find the axes in which the products of any two columns of factors add up to 0.

    Inner products of rows are the same in them.

    Args:
        factors: [R, K], float.

    Returns:
        [K, K], orthogonal, the axes as columns, those of little weight first: ``factors @ axes``
        has the columns.
    """
    gram = (factors.T @ factors).double()
    axes: Tensor = torch.linalg.eigh(gram).eigenvectors
    return axes.to(factors.dtype)
