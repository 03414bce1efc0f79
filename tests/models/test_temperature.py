"""The temperature: what it starts as, and that its bounds hold without trapping it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recsys.foundations import ArgumentError
from recsys.models.temperature import FixedTemperature, LearnedTemperature


def test_a_fixed_temperature_is_what_was_asked_for() -> None:
    fixed = FixedTemperature(0.05)
    assert torch.equal(fixed(), torch.tensor(0.05))
    assert not list(fixed.parameters())


def test_a_fixed_temperature_of_zero_is_refused() -> None:
    with pytest.raises(ArgumentError, match="`temperature` must be above 0, got 0"):
        FixedTemperature(0.0)


@given(value=st.floats(0.011, 9.9))
def test_a_learned_temperature_starts_where_it_was_told(value: float) -> None:
    assert LearnedTemperature(value, low=0.01, high=10.0)().item() == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("direction", [1, -1])
def test_a_learned_temperature_stays_inside_its_bounds_and_finds_back(direction: int) -> None:
    learned = LearnedTemperature(0.5, low=0.1, high=1.0)
    optimizer = torch.optim.SGD(learned.parameters(), lr=2.0)
    for _ in range(200):
        optimizer.zero_grad()
        torch.autograd.backward(direction * learned())
        optimizer.step()
        assert 0.1 <= learned().item() <= 1.0
    assert learned().item() == pytest.approx(0.1 if direction > 0 else 1.0, rel=0.05)
    torch.autograd.backward(-direction * learned())
    assert learned.position.grad is not None
    assert learned.position.grad.item() != 0
