"""One seed, streams of their own; one number of threads."""

import os
import random

import numpy as np
import pyarrow as pa
import pytest
import threadpoolctl
import torch

from recsys.foundations import (
    ArgumentError,
    available_cores,
    derive_seed,
    make_generator,
    make_numpy_generator,
    seed_everything,
    set_threads,
    thread_bound,
)


def test_a_stream_is_the_same_each_time_and_unlike_the_others() -> None:
    assert derive_seed(3, "draws", 1) == derive_seed(3, "draws", 1)
    seeds = {derive_seed(seed, name, n) for seed in (0, 1) for name in "ab" for n in (0, 1)}
    assert len(seeds) == 8
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_a_stream_does_not_depend_on_the_process() -> None:
    # The first 8 bytes of `printf 7/x/2 | sha256sum`, without the last bit.
    assert derive_seed(7, "x", 2) == 0x86D9464D00E93BD5 >> 1


def test_generators_repeat_their_stream() -> None:
    first, again = make_generator(0, "a"), make_generator(0, "a")
    assert torch.equal(torch.rand(5, generator=first), torch.rand(5, generator=again))
    draws = [make_numpy_generator(0, name).random(5) for name in ("a", "a", "b")]
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])


def test_seed_zero_is_a_seed() -> None:
    draws = []
    for seed in (0, 0, 1):
        seed_everything(seed)
        draws.append((random.random(), float(torch.rand(1))))
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]


def test_a_thread_count_binds_every_pool() -> None:
    before = torch.get_num_threads()
    try:
        set_threads(1)
        assert (torch.get_num_threads(), pa.cpu_count(), pa.io_thread_count()) == (1, 1, 1)
        assert {pool["num_threads"] for pool in threadpoolctl.threadpool_info()} == {1}
        assert thread_bound() == 1
    finally:
        set_threads(before)


def test_no_threads_are_refused() -> None:
    with pytest.raises(ArgumentError, match="`num_threads` must be above 0, got 0"):
        set_threads(0)


def test_there_is_a_core() -> None:
    assert 1 <= available_cores() <= (os.cpu_count() or 1)
