"""The rise of the resident memory, against arrays of known size."""

from functools import partial

import numpy as np
import pytest

from recsys.benchmark import process_peak, resident_peak
from recsys.foundations import ArgumentError

MEGABYTE = 10**6


def fill(megabytes: int) -> np.ndarray:
    return np.ones(megabytes * MEGABYTE, np.uint8)


def double(values: np.ndarray) -> None:
    values * 2


def refuse() -> None:
    raise ArgumentError("`this` must not be done.")


def test_counts_what_the_job_takes_at_its_worst_moment_and_not_what_was_there() -> None:
    # 300 MB are there before, another 300 MB are made: a rise of 300 MB, which Linux counts to
    # within some hundred kB, and a little.
    peak = resident_peak(double, prepare=partial(fill, 300))
    assert 299 * MEGABYTE <= peak <= 320 * MEGABYTE


def test_an_error_of_the_job_is_raised_here() -> None:
    with pytest.raises(ArgumentError, match="`this` must not be done"):
        resident_peak(refuse)


def test_the_peak_of_a_whole_process_counts_python_and_the_toolkit_too() -> None:
    peaks = [process_peak(partial(fill, megabytes)) for megabytes in (100, 400)]
    assert peaks[0] > 200 * MEGABYTE  # torch alone takes more than 100 MB
    assert peaks[1] - peaks[0] == pytest.approx(300 * MEGABYTE, abs=20 * MEGABYTE)
