"""Products by either library, against float64."""

import pytest
import torch
from torch.testing import assert_close

from recsys.foundations import has_fast_linear, linear


@pytest.mark.parametrize("rows", [1, 7, 300])  # the last goes to oneDNN where there is one
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equals_the_product_in_float64(rows: int, transposed: bool, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    shapes = ((64, rows), (64, 65)) if transposed else ((rows, 64), (65, 64))
    left, right = (torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes)
    left, right = (left.T, right.T) if transposed else (left, right)
    offsets = torch.randn(65, generator=generator, dtype=dtype)
    expected = left.double() @ right.double().T
    # Sums of 64 products near 1: a few roundings of 2^-24 each, of about 8.
    assert_close(linear(left, right).double(), expected, rtol=0, atol=2e-5)
    assert_close(linear(left, right, offsets).double(), expected + offsets, rtol=0, atol=2e-5)


@pytest.mark.parametrize("rows", [1, 300])
def test_offsets_may_lie_anyhow(rows: int) -> None:
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(size, 64, generator=generator) for size in (rows, 65))
    plain = left.double() @ right.double().T
    for offsets in (torch.randn(130, generator=generator)[::2], torch.ones(1).expand(65)):
        assert not offsets.is_contiguous()
        found = linear(left, right, offsets).double()
        assert_close(found, plain + offsets, rtol=0, atol=2e-5)


def test_a_product_of_nothing_is_zeros_or_empty() -> None:
    assert linear(torch.ones(0, 3), torch.ones(2, 3)).shape == (0, 2)
    assert linear(torch.ones(2, 0), torch.ones(3, 0)).tolist() == [[0, 0, 0]] * 2


def test_only_float32_on_a_cpu_is_fast() -> None:
    assert not has_fast_linear(torch.ones(2, 2, dtype=torch.float64))
    assert not has_fast_linear(torch.ones(2, 2, device="meta"))
