"""The effective sample size against its formula, its limits, and where exp overflows."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from recsys.losses import effective_sample_size, importance_weights

LOG_WEIGHTS = st.lists(st.floats(-50, 50), min_size=1, max_size=40)


def test_equals_the_value_worked_by_hand() -> None:
    # Weights 1, 2, 3: 6^2 / (1 + 4 + 9) = 36 / 14.
    assert_close(
        effective_sample_size(torch.tensor([[1.0, 2.0, 3.0]]).log()), torch.tensor([36 / 14])
    )


@given(values=LOG_WEIGHTS)
def test_equals_one_over_the_sum_of_squared_normalised_weights(values: list[float]) -> None:
    log_weights = torch.tensor([values], dtype=torch.float64)
    squares = importance_weights(log_weights).square().sum(dim=1)
    assert_close(effective_sample_size(log_weights), 1 / squares, rtol=1e-10, atol=0)


@given(values=LOG_WEIGHTS, shift=st.floats(-1000, 1000))
def test_lies_from_one_to_the_sample_size_and_ignores_a_constant(
    values: list[float], shift: float
) -> None:
    log_weights = torch.tensor([values], dtype=torch.float64)
    size = effective_sample_size(log_weights).item()
    assert 1 - 1e-12 <= size <= len(values) * (1 + 1e-12)
    shifted = effective_sample_size(log_weights + shift).item()
    assert shifted == pytest.approx(size, rel=1e-9)


def test_is_the_sample_size_where_all_weights_are_equal() -> None:
    assert_close(effective_sample_size(torch.full((2, 7), -3.5)), torch.full((2,), 7.0))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_keeps_its_digits_where_exp_overflows(dtype: torch.dtype) -> None:
    log_weights = torch.tensor([[1.0, 2.0, 3.0]], dtype=dtype).log() + torch.tensor(
        [[2048.0], [-2048.0]], dtype=dtype
    )
    # The shift itself rounds: 2048 + ln 3 has 1e-4 in float32.
    limit = 1e-12 if dtype == torch.float64 else 2e-4
    expected = torch.full((2,), 36 / 14, dtype=dtype)
    assert_close(effective_sample_size(log_weights), expected, rtol=limit, atol=0)


def test_weights_of_zero_add_nothing_and_nothing_else_is_worth_zero() -> None:
    inf = float("inf")
    log_weights = torch.tensor([[0.0, -inf, 0.0], [-inf, -inf, -inf]])
    assert torch.equal(effective_sample_size(log_weights), torch.tensor([2.0, 0.0]))
    assert torch.equal(effective_sample_size(torch.zeros(2, 0)), torch.zeros(2))


def test_one_row_gives_one_number_in_float32_or_wider() -> None:
    size = effective_sample_size(torch.zeros(5, dtype=torch.bfloat16, requires_grad=True))
    assert size.shape == ()
    assert size.dtype == torch.float32
    assert not size.requires_grad
