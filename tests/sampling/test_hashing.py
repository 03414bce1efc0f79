"""Buckets: where they lie, that they stay, how often they are shared, what is refused."""

from collections.abc import Callable

import pytest
import torch

from recsys.foundations import ArgumentError, ShapeError
from recsys.sampling import SeededHashing, TableHashing


def test_the_same_seed_gives_the_same_buckets_and_another_seed_others() -> None:
    rows = torch.arange(1000)
    first, again, other = (SeededHashing(3, 64, seed) for seed in (5, 5, 6))
    assert torch.equal(first.buckets(rows), again.buckets(rows))
    assert torch.equal(first.identity(), again.identity())
    assert not torch.equal(first.buckets(rows), other.buckets(rows))
    assert not torch.equal(first.identity(), other.identity())


@pytest.mark.parametrize("shape", [(), (7,), (4, 5)])
def test_gives_a_bucket_a_table_for_rows_of_any_shape(shape: tuple[int, ...]) -> None:
    rows = torch.randint(2**31 - 1, shape, generator=torch.Generator().manual_seed(0))
    buckets = SeededHashing(3, 11, 0).buckets(rows)
    assert buckets.shape == (3, *shape)
    assert ((buckets >= 0) & (buckets < 11)).all()


def test_a_row_has_its_bucket_whatever_stands_beside_it() -> None:
    hashing, rows = SeededHashing(2, 101, 0), torch.tensor([3, 2**31 - 2, 3, 77])
    alone = torch.stack([hashing.buckets(row) for row in rows], dim=1)
    assert torch.equal(hashing.buckets(rows), alone)


def test_two_rows_share_a_bucket_once_in_as_many_seeds_as_there_are_buckets() -> None:
    # 2,000 functions, H = 10: each of 45 pairs of rows is expected to meet in 200 of them, with a
    # standard deviation of sqrt(2000 * 0.1 * 0.9) = 13.4; 4.5 of them either way.
    rows = torch.tensor([0, 1, 2, 3, 10, 20, 1000, 1001, 2**30, 2**31 - 2])
    buckets = SeededHashing(2000, 10, 0).buckets(rows)  # [2000, 10]
    shared = (buckets[:, :, None] == buckets[:, None, :]).sum(dim=0)  # [10, 10]
    pairs = shared[torch.triu(torch.ones(10, 10, dtype=torch.bool), diagonal=1)]
    assert len(pairs) == 45
    assert (pairs - 200).abs().max() < 61


def test_no_seed_folds_consecutive_rows_together() -> None:
    # 4,096 rows in 4,096 buckets: 2,047.5 pairs share one, with a standard deviation of about 45.
    loads = torch.zeros(100, 4096)
    buckets = SeededHashing(100, 4096, 0).buckets(torch.arange(4096))
    loads.scatter_add_(1, buckets, torch.ones(100, 4096))
    pairs = (loads * (loads - 1) / 2).sum(dim=1)  # [100]
    assert (pairs - 2047.5).abs().max() < 200
    assert loads.max() < 12


def test_a_written_table_is_looked_up() -> None:
    hashing = TableHashing(torch.tensor([[0, 1, 0], [2, 1, 1]]), num_buckets=4)
    assert (hashing.num_tables, hashing.num_buckets) == (2, 4)
    assert hashing.buckets(torch.tensor([[2, 0]])).tolist() == [[[0, 0]], [[1, 2]]]


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: SeededHashing(0, 4, 0), "`num_tables` must be above 0, got 0"),
        (lambda: SeededHashing(1, 0, 0), r"`num_buckets` must be in \[1, 2147483647\), got 0"),
        (lambda: SeededHashing(1, 4, 0).buckets(torch.tensor([-1])), r"`rows` must be in .*-1"),
        (
            lambda: SeededHashing(1, 4, 0).buckets(torch.tensor([2**31 - 1])),
            r"`rows` must be in \[0, 2147483647\), got 2147483647",
        ),
        (
            lambda: TableHashing(torch.tensor([[0, 4]]), num_buckets=4),
            r"`tables` must be in \[0, 4\), got 4",
        ),
        (
            lambda: TableHashing(torch.zeros(0, 3).long(), num_buckets=4),
            "`num_tables` must be above 0, got 0",
        ),
        (
            lambda: TableHashing(torch.zeros(1, 3).long(), num_buckets=4).buckets(
                torch.tensor([3])
            ),
            r"`rows` must be in \[0, 3\), got 3",
        ),
    ],
)
def test_names_what_is_out_of_range(build: Callable[[], object], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        build()


def test_refuses_a_table_of_another_shape() -> None:
    with pytest.raises(ShapeError, match="`tables` must have shape"):
        TableHashing(torch.arange(3), num_buckets=3)
