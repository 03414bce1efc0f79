"""The learning-rate schedules: their corners, their range, and how rates are set from them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from recsys.foundations import ArgumentError
from recsys.training.schedules import build_schedule, set_learning_rates

NAMES = ("constant", "linear_warmup_decay", "cosine")


def test_corners_by_hand() -> None:
    # 3 warm-up steps: 1/4, 2/4, 3/4, then 1; 11 steps in all, half of the decay behind at step 7.
    constant, linear, cosine = (
        build_schedule(name, warmup_steps=3, total_steps=11) for name in NAMES
    )
    for schedule in (constant, linear, cosine):
        assert [schedule(step) for step in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert constant(10) == constant(1000) == 1
    assert linear(7) == 0.5
    assert linear(9) == 0.25
    assert cosine(7) == pytest.approx(0.5)
    assert cosine(9) == pytest.approx((1 - 2**-0.5) / 2)
    assert linear(11) == cosine(11) == linear(1000) == cosine(1000) == 0


@given(
    name=st.sampled_from(NAMES),
    warmup_steps=st.integers(0, 50),
    others=st.integers(1, 50),
    data=st.data(),
)
def test_every_step_of_the_run_has_a_rate(
    name: str, warmup_steps: int, others: int, data: st.DataObject
) -> None:
    total_steps = warmup_steps + others
    schedule = build_schedule(name, warmup_steps=warmup_steps, total_steps=total_steps)
    step = data.draw(st.integers(0, total_steps - 1))
    assert 0 < schedule(step) <= 1
    assert schedule(warmup_steps) == 1


@pytest.mark.parametrize(("warmup_steps", "total_steps"), [(-1, 5), (5, 5), (0, 0)])
def test_refuses_a_run_without_a_step_at_the_full_rate(warmup_steps: int, total_steps: int) -> None:
    with pytest.raises(ArgumentError, match="`warmup_steps` must be at least 0 and below"):
        build_schedule("cosine", warmup_steps=warmup_steps, total_steps=total_steps)


def test_refuses_an_unknown_name() -> None:
    with pytest.raises(ArgumentError, match="`schedule` must be one of constant, "):
        build_schedule("exponential", warmup_steps=0, total_steps=5)


def test_factors_do_not_pile_up() -> None:
    optimizers = [torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=rate) for rate in (0.5, 0.25)]
    for factor in (0.5, 0.5, 1.0, 0.5):
        set_learning_rates(optimizers, factor)
    assert [optimizer.param_groups[0]["lr"] for optimizer in optimizers] == [0.25, 0.125]
