"""The order of an epoch: every row once, taken up anywhere, mixed well enough."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from recsys.data.shuffled_rows import ShuffledRows
from recsys.foundations import ArgumentError, make_numpy_generator

POOLS = st.sampled_from([1, 2, 63, 64, 65, 127, 128, 192, 200, 1000])


def make_order(num_rows: int, *, pool_rows: int, seed: int = 0) -> ShuffledRows:
    return ShuffledRows(num_rows, pool_rows=pool_rows, seed=seed)


def whole(batches: Iterator[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.int64), *batches])


@given(
    num_rows=st.integers(0, 700), pool_rows=POOLS, size=st.integers(1, 300), epoch=st.integers(0, 2)
)
def test_an_epoch_has_every_row_once_in_batches_of_one_size(
    num_rows: int, pool_rows: int, size: int, epoch: int
) -> None:
    batches = list(make_order(num_rows, pool_rows=pool_rows).batches(epoch, size))
    assert sorted(whole(iter(batches)).tolist()) == list(range(num_rows))
    sizes = [size] * (num_rows // size) + [num_rows % size] * (num_rows % size > 0)
    assert [len(batch) for batch in batches] == sizes


@given(
    num_rows=st.integers(0, 700), pool_rows=POOLS, size=st.integers(1, 300), first=st.integers(0, 9)
)
def test_an_epoch_taken_up_at_a_batch_goes_on_with_the_same_rows(
    num_rows: int, pool_rows: int, size: int, first: int
) -> None:
    order = make_order(num_rows, pool_rows=pool_rows)
    entire = list(order.batches(1, size))[first:]
    rest = list(make_order(num_rows, pool_rows=pool_rows).batches(1, size, first_batch=first))
    assert [batch.tolist() for batch in rest] == [batch.tolist() for batch in entire]


@pytest.mark.parametrize("num_rows", [1, 64, 1000])
def test_rows_that_fit_the_pool_are_one_permutation(num_rows: int) -> None:
    order = make_order(num_rows, pool_rows=1000, seed=7)
    expected = make_numpy_generator(7, "batches", 3).permutation(num_rows)
    assert_array_equal(whole(order.batches(3, 17)), expected)


def test_the_order_depends_on_seed_and_epoch() -> None:
    keys = [(seed, epoch) for seed in (0, 1) for epoch in (0, 1)]
    orders = [
        tuple(whole(make_order(1000, pool_rows=256, seed=seed).batches(epoch, 100)))
        for seed, epoch in keys
    ]
    assert len(set(orders)) == 4
    again = whole(make_order(1000, pool_rows=256, seed=1).batches(1, 100))
    assert tuple(again) == orders[3]


def test_a_pool_holds_whole_blocks_from_everywhere() -> None:
    # 64,000 rows in pools of 6,400 are ten pools of 100 blocks of 64 rows. Of 1,000 blocks in ten
    # stretches of 100, each pool has about 10 of each; hypergeometric with variance 8.1, so that
    # 2 to 25 is 2.8 standard deviations down and 5.3 up, and chance alone decides by the seed.
    rows = whole(make_order(64_000, pool_rows=6400).batches(0, 1000)).reshape(10, 6400)
    for pool in rows:
        blocks, counts = np.unique(pool // 64, return_counts=True)
        assert counts.tolist() == [64] * 100
        stretches = np.bincount(blocks // 100, minlength=10)
        assert stretches.min() >= 2
        assert stretches.max() <= 25


def test_rows_of_a_batch_share_a_block_as_often_as_the_sizes_say() -> None:
    # Two rows of a pool of 6,400 are of one block of 64 with the chance 63 / 6399 = 0.00985.
    order = make_order(64_000, pool_rows=6400)
    shared = [
        (np.bincount(batch // 64) * (np.bincount(batch // 64) - 1)).sum() / (640 * 639)
        for batch in order.batches(0, 640)
    ]
    # Each of 100 batches has 204,480 pairs; the mean of all has a standard error below 0.0001.
    assert np.mean(shared) == pytest.approx(63 / 6399, abs=0.0004)


def test_neighbours_in_the_order_are_no_neighbours_in_the_log() -> None:
    rows = whole(make_order(64_000, pool_rows=6400).batches(0, 64_000))
    # A random order of a pool's rows has neighbours one apart with a chance near 2 / 6400.
    assert np.mean(np.abs(np.diff(rows)) == 1) == pytest.approx(2 / 6400, abs=2e-4)


def test_refuses_a_pool_without_rows() -> None:
    with pytest.raises(ArgumentError, match="`pool_rows` must be above 0, got 0"):
        make_order(10, pool_rows=0)
