"""The axes are orthogonal, keep inner products, and leave the columns nothing in common."""

import pytest
import torch
from torch.testing import assert_close

from recsys.models.principal_axes import principal_axes


@pytest.mark.parametrize("num_rows", [0, 3, 200])
def test_columns_have_nothing_in_common_and_rows_the_products_they_had(num_rows: int) -> None:
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(6, 6, generator=generator)
    factors = torch.randn(num_rows, 6, generator=generator) @ mixing
    axes = principal_axes(factors)
    assert axes.dtype == torch.float32
    assert_close(axes.T @ axes, torch.eye(6), atol=1e-5, rtol=0)
    turned = factors @ axes
    gram = turned.double().T @ turned.double()
    size = float(gram.diagonal().sum())
    assert_close(gram, gram.diagonal().diag(), atol=1e-5 * size, rtol=0)
    assert (gram.diagonal().diff() >= -1e-5 * size).all()
    assert_close(turned @ turned.T, factors @ factors.T, atol=1e-5 * max(size, 1.0), rtol=0)
