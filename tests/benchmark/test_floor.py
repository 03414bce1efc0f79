"""The machine's rates: what they are made of, never how large they are."""

import pytest
import torch

from recsys.benchmark import matmul_rate, measure_rates
from recsys.foundations import ArgumentError


def test_rates_are_measured_once_a_thread_count() -> None:
    rates = measure_rates()
    assert all(value > 0 for value in rates.to_json().values())
    assert rates.threads == torch.get_num_threads()
    assert measure_rates() is rates


def test_the_rate_of_a_narrow_product_can_be_asked_for() -> None:
    assert matmul_rate(2, 3, 4, torch.bfloat16) > 0
    with pytest.raises(ArgumentError, match="`inner` must be above 0"):
        matmul_rate(2, 0, 4)
