"""Gaps between events: their buckets by hand, and the vector of those that are not known."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recsys.data import NO_TIME
from recsys.models.history_blocks import cut_compact
from recsys.models.time_gaps import TimeGaps, gap_buckets

SECOND = 1_000_000


def bucket_of(microseconds: int) -> int:
    times = torch.tensor([0, microseconds])
    return int(gap_buckets(times, torch.tensor([True, False]))[1])


@pytest.mark.parametrize(
    ("microseconds", "bucket"),
    [
        (-5 * SECOND, 0),  # out of order
        (0, 0),
        (SECOND - 1, 0),
        (SECOND, 1),
        (2 * SECOND - 1, 1),
        (2 * SECOND, 2),
        (4 * SECOND - 1, 2),
        (4 * SECOND, 3),
        (60 * SECOND, 6),  # 32 to 64 seconds
        (86_400 * SECOND, 17),  # 65536 to 131072 seconds
        (2**26 * SECOND - 1, 26),
        (2**26 * SECOND, 27),
        (10**9 * SECOND, 27),
    ],
)
def test_a_bucket_is_a_doubling_of_seconds(microseconds: int, bucket: int) -> None:
    assert bucket_of(microseconds) == bucket


def test_the_oldest_item_and_missing_times_have_no_gap() -> None:
    times = torch.tensor([5, 9, NO_TIME, 9, 3, 4]) * 1
    oldest = torch.tensor([True, False, False, False, True, False])
    assert gap_buckets(times, oldest).tolist() == [28, 0, 28, 28, 28, 0]


def read(gaps: TimeGaps, times: list[list[int]]) -> Tensor:
    newest_first = torch.tensor(times)
    histories = torch.zeros_like(newest_first)
    (block,) = cut_compact(histories, histories == 0, newest_first)
    read: Tensor = gaps(block)
    return read


def test_each_token_has_the_vector_of_its_bucket() -> None:
    torch.manual_seed(0)
    gaps = TimeGaps(3, dropout=0.0, init_std=1.0)
    vectors = read(gaps, [[90 * SECOND, 30 * SECOND, 25 * SECOND]])
    assert_close(vectors, gaps.vectors[[28, 3, 6]])  # oldest first: none, 5 and 60 seconds


def test_training_hides_all_gaps_of_its_share_of_the_histories() -> None:
    torch.manual_seed(0)
    gaps = TimeGaps(3, dropout=0.25, init_std=1.0)
    times = [[20 * SECOND, 10 * SECOND, 0]]
    unknown = (read(gaps, times * 15)[None] == gaps.vectors[28]).all(dim=2).view(15, 3)
    assert bool(unknown[:, 0].all())
    assert torch.equal(unknown[:, 1], unknown[:, 2])
    hidden = [bool((read(gaps, times)[1] == gaps.vectors[28]).all()) for _ in range(2000)]
    assert sum(hidden) / 2000 == pytest.approx(0.25, abs=0.043)  # 4.4 standard errors
    gaps.eval()
    assert_close(read(gaps, times), gaps.vectors[[28, 4, 4]])
