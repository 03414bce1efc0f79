"""How many threads an operator of a step gets, by hand: one for each 2^29 operations."""

import pytest
from torch import nn

from recsys.training import choose_operator_threads


@pytest.mark.parametrize(
    ("rows", "threads"),
    [
        (4096, 1),  # 2 x 4096 x 64 x 128 = 2^26
        (2**15 - 1, 1),  # just below 2^29
        (2**16 - 1, 1),
        (2**16, 2),  # 2^30
        (3 * 2**15, 3),
        (2**20, 4),  # no more than there are
    ],
)
def test_the_widest_layer_counts(rows: int, threads: int) -> None:
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))
    assert choose_operator_threads([(model, rows)], num_threads=4) == threads


def test_tables_do_not_count() -> None:
    table = nn.Embedding(10**6, 64)
    assert choose_operator_threads([(table, 2**20)], num_threads=8) == 1
    assert choose_operator_threads([], num_threads=8) == 1


def test_the_part_counts_that_multiplies_most() -> None:
    users, items = nn.Linear(64, 128), nn.Linear(64, 64)  # 2^14 and 2^13 operations a row
    assert choose_operator_threads([(users, 2**10), (items, 2**18)], num_threads=8) == 4
    assert choose_operator_threads([(users, 2**17), (items, 2**10)], num_threads=8) == 4


def test_a_recurrent_layer_counts() -> None:
    # 64 inputs to three gates of 128: 2 x 64 x 384 operations a row; 128 to them: twice that.
    encoder = nn.GRU(64, 128)
    assert choose_operator_threads([(encoder, 2**14)], num_threads=8) == 3  # 2^14 x 98,304 / 2^29
    assert choose_operator_threads([(encoder, 2**12)], num_threads=8) == 1
