"""Histories laid out as padded blocks against loops, and buckets of gaps against the encoder's."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from recsys.data import NO_TIME
from recsys.export.onnx_causal import gap_buckets
from recsys.export.onnx_history import ages_of, oldest_first
from recsys.models import time_gaps

KNOWN = st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=5)


@given(known=KNOWN)
def test_what_is_known_comes_to_the_front_the_oldest_first(known: list[list[bool]]) -> None:
    values = torch.arange(1, 1 + 6 * len(known)).view(len(known), 6)
    got = oldest_first(values, torch.tensor(known))
    for row, there in enumerate(known):
        kept = [int(values[row, place]) for place in range(6) if there[place]]
        assert got[row].tolist() == kept[::-1] + [0] * (6 - len(kept))


@given(known=KNOWN)
def test_ages_count_what_is_known_from_the_newest(known: list[list[bool]]) -> None:
    ages = ages_of(torch.tensor(known))
    for row, there in enumerate(known):
        places = [place for place in range(6) if there[place]]
        assert ages[row, places].tolist() == list(range(len(places)))


@given(
    powers=st.lists(st.integers(0, 40), min_size=1, max_size=8),
    shifts=st.lists(st.sampled_from([-1_000_000, -1, 0, 1, 999_999]), min_size=8, max_size=8),
    unknown=st.lists(st.booleans(), min_size=9, max_size=9),
)
def test_gaps_fall_into_the_buckets_of_the_encoder(
    powers: list[int], shifts: list[int], unknown: list[bool]
) -> None:
    # Around every bound: two to the power of n seconds, a second less, a microsecond more.
    gaps = [
        max((1_000_000 << power) + shift, 0) for power, shift in zip(powers, shifts, strict=False)
    ]
    times = torch.from_numpy(np.concatenate([[0], np.cumsum(gaps)]).astype(np.int64))
    times = times.masked_fill(torch.tensor(unknown[: len(times)]), NO_TIME)
    oldest = torch.arange(len(times)) == 0
    wanted = time_gaps.gap_buckets(times, oldest)
    assert gap_buckets(times[None], 28)[0].tolist() == wanted.tolist()
