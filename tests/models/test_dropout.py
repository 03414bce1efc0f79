"""Dropout: the share that it sets to zero, each value by itself, and its gradient."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from recsys.models.dropout import Dropout


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.99])
def test_it_sets_its_share_to_zero_and_scales_the_others(share: float) -> None:
    torch.manual_seed(0)
    dropped = Dropout(share)(torch.ones(200, 500))
    zeros = (dropped == 0).double().mean().item()
    spread = (share * (1 - share) / 100_000) ** 0.5
    assert zeros == pytest.approx(share, abs=4.5 * spread)
    kept = dropped[dropped != 0]
    assert_close(kept, torch.full_like(kept, 1 / (1 - share)), rtol=1e-3, atol=0)


def test_neighbours_are_dropped_independently() -> None:
    torch.manual_seed(0)
    zeros = (Dropout(0.3)(torch.ones(400_000)) == 0).view(-1, 4).double()
    # Four values come from one draw: their correlations vanish within 4.5 standard errors.
    correlations = torch.corrcoef(zeros.T) - torch.eye(4)
    assert correlations.abs().max() < 4.5 / 100_000**0.5


@given(size=st.integers(0, 9), share=st.sampled_from([0.0, 0.4]))
def test_the_gradient_is_the_scale_where_a_value_is_kept(size: int, share: float) -> None:
    values = torch.full((size, 3), 2.0, requires_grad=True)
    dropped = Dropout(share)(values)
    torch.autograd.backward(dropped.sum())
    assert values.grad is not None
    assert_close(values.grad * 2, dropped.detach())


def test_nothing_is_dropped_outside_training() -> None:
    values = torch.randn(50)
    assert torch.equal(Dropout(0.9).eval()(values), values)
