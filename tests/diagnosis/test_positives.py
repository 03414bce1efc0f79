"""Validation positives in equal shares of the popularity deciles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.data import PreparedDataset
from recsys.diagnosis import choose_positives, equal_quotas
from recsys.evaluation import popularity_deciles


@given(st.lists(st.integers(0, 50), min_size=1, max_size=10), st.integers(0, 300))
def test_quotas_are_as_equal_as_what_there_is_allows(available: list[int], total: int) -> None:
    quotas = equal_quotas(np.array(available), total)
    assert quotas.sum() == min(total, sum(available))
    assert (quotas <= available).all()
    open_ones = quotas[quotas < available]  # could take more
    if len(open_ones):
        assert quotas.max() <= open_ones.min() + 1


def test_quotas_by_hand() -> None:
    # 2 and 5 are all there is of the first two; 13 are left for two others, 6 and 7.
    assert equal_quotas(np.array([2, 5, 50, 50]), 20).tolist() == [2, 5, 6, 7]


def test_positives_are_of_the_validation_part_with_the_queries_that_chose_them(
    dataset: PreparedDataset,
) -> None:
    chosen = choose_positives(dataset, 60, seed=0)
    assert len(chosen) == 60
    pairs = set(
        zip(dataset.validation.users.tolist(), dataset.validation.items.tolist(), strict=True)
    )
    found = list(zip(chosen.queries.user_rows.tolist(), chosen.item_rows.tolist(), strict=True))
    assert len(set(found)) == 60
    assert set(found) <= pairs
    deciles = popularity_deciles(dataset.items.counts[: dataset.num_items])
    assert (deciles[chosen.item_rows] == chosen.deciles).all()
    assert chosen.per_decile().sum() == 60
    assert chosen.num_available + chosen.num_unreachable == len(pairs)
    training = dataset.train.by_user(dataset.num_users)
    for row, last in zip(chosen.queries.user_rows[:5], chosen.last_rows()[:5], strict=True):
        assert training[row][-1] == last


def test_deciles_are_drawn_alike_where_they_hold_enough(dataset: PreparedDataset) -> None:
    every = choose_positives(dataset, 10_000, seed=0)
    assert len(every) == every.num_available
    there = every.per_decile()
    some = choose_positives(dataset, 40, seed=0).per_decile()
    exhausted = some == there
    assert some[~exhausted].max() - some[~exhausted].min() <= 1


def test_the_choice_depends_on_the_seed_alone(dataset: PreparedDataset) -> None:
    first, again, other = (choose_positives(dataset, 30, seed).item_rows for seed in (0, 0, 1))
    assert (first == again).all()
    assert not np.array_equal(first, other)


def test_refuses_a_validation_part_without_events(dataset: PreparedDataset) -> None:
    from dataclasses import replace

    from recsys.foundations import DataError

    empty = replace(dataset, validation=dataset.validation.take(np.zeros(0, np.int64)))
    with pytest.raises(DataError, match="is empty: nothing to measure on"):
        choose_positives(empty, 30, seed=0)
