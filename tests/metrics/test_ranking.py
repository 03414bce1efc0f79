"""Ranking metrics against a slow second version, values worked by hand, and their bounds."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from recsys.foundations import ArgumentError, Ragged, ShapeError
from recsys.metrics import (
    capped_recall_at_k,
    distinct,
    hit_rate_at_k,
    map_at_k,
    mrr_at_k,
    ndcg_at_k,
    num_relevant_of,
    precision_at_k,
    ranks_of,
    recall_at_k,
    relevance_of,
    top_k,
)


def make_ragged(lists: list[list[int]]) -> Ragged:
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return Ragged(offsets, np.array([row for one in lists for row in one], np.int64))


def slow_metrics(shown: list[int], relevant: set[int], k: int) -> dict[str, float]:
    """One query, place by place."""
    gain, hits, precision_sum, first, met = 0.0, 0, 0.0, 0, set()
    for rank, row in enumerate(shown[:k], start=1):
        if row in relevant and row not in met:
            hits += 1
            gain += 1 / math.log2(rank + 1)
            precision_sum += hits / rank
            first = first or rank
        met.add(row)
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(relevant)) + 1))
    nothing = float("nan")
    return {
        "recall": hits / len(relevant) if relevant else nothing,
        "capped_recall": hits / min(k, len(relevant)) if relevant else nothing,
        "precision": hits / k,
        "hit_rate": float(hits > 0),
        "ndcg": gain / best if relevant else nothing,
        "mrr": 1 / first if first else 0.0,
        "map": precision_sum / min(k, len(relevant)) if relevant else nothing,
    }


def all_metrics(shown: list[list[int]], relevant: list[list[int]], k: int) -> dict[str, Any]:
    truth = make_ragged(relevant)
    hits, count = relevance_of(make_ragged(shown), truth), num_relevant_of(truth)
    return {
        "recall": recall_at_k(hits, count, k),
        "capped_recall": capped_recall_at_k(hits, count, k),
        "precision": precision_at_k(hits, k),
        "hit_rate": hit_rate_at_k(hits, k),
        "ndcg": ndcg_at_k(hits, count, k),
        "mrr": mrr_at_k(hits, k),
        "map": map_at_k(hits, count, k),
    }


small_lists = st.lists(st.lists(st.integers(0, 6), max_size=8), min_size=1, max_size=5)


@given(shown=small_lists, data=st.data(), k=st.integers(1, 9))
def test_every_metric_equals_the_slow_version(
    shown: list[list[int]], data: st.DataObject, k: int
) -> None:
    count = len(shown)
    relevant = data.draw(
        st.lists(st.lists(st.integers(0, 8), max_size=4), min_size=count, max_size=count)
    )
    fast = all_metrics(shown, relevant, k)
    slow = [slow_metrics(one, set(wanted), k) for one, wanted in zip(shown, relevant, strict=True)]
    for name, values in fast.items():
        assert_allclose(values, [row[name] for row in slow], rtol=1e-12, err_msg=name)


@given(shown=small_lists, k=st.integers(1, 9))
def test_no_value_passes_1_and_recall_never_falls_with_k(shown: list[list[int]], k: int) -> None:
    relevant = [[1, 2, 3]] * len(shown)
    values, longer = all_metrics(shown, relevant, k), all_metrics(shown, relevant, k + 1)
    assert all((one >= 0).all() and (one <= 1).all() for one in values.values())
    assert (longer["recall"] >= values["recall"]).all()
    assert (longer["mrr"] >= values["mrr"]).all()


def test_a_k_of_any_size_costs_no_more_than_the_lists() -> None:
    shown, relevant = [[3, 1, 2], []], [[1, 2, 7], [4]]
    for name, values in all_metrics(shown, relevant, 2**62).items():
        expected = all_metrics(shown, relevant, 10)[name]
        assert_allclose(values, expected if name != "precision" else [2 / 2**62, 0], err_msg=name)


def test_average_precision_worked_by_hand() -> None:
    # Hits at ranks 1 and 3 of 4 relevant: (1/1 + 2/3) / min(3, 4) = 5/9 at k = 3.
    assert_allclose(all_metrics([[7, 8, 9]], [[7, 9, 1, 2]], 3)["map"], [5 / 9])


def test_a_repeat_counts_at_its_first_place_and_keeps_the_others_occupied() -> None:
    # Row 5 twice, then row 6: at k = 2 row 6 is still out of the list.
    hits = relevance_of(make_ragged([[5, 5, 6]]), make_ragged([[5, 6, 6]]))
    assert hits.rows.tolist() == [True, False, True]
    assert recall_at_k(hits, np.array([2]), 2).tolist() == [0.5]


def test_a_query_without_relevant_candidates_is_undefined_where_the_metric_divides_by_them() -> (
    None
):
    values = all_metrics([[1, 2]], [[]], 2)
    assert {name for name, value in values.items() if np.isnan(value[0])} == {
        "recall",
        "capped_recall",
        "ndcg",
        "map",
    }
    assert values["precision"] == values["hit_rate"] == values["mrr"] == 0


def test_empty_lists_are_misses() -> None:
    values = all_metrics([[], []], [[1], [2, 3]], 5)
    assert all(value.tolist() == [0.0, 0.0] for value in values.values())


def test_ranks_stand_beside_the_truth_and_are_infinite_where_absent() -> None:
    ranks = ranks_of(make_ragged([[4, 5, 5], [], [2]]), make_ragged([[5, 9], [1], [2, 2]]))
    assert ranks.rows.tolist() == [2, np.inf, np.inf, 1, 1]
    assert ranks.offsets.tolist() == [0, 2, 3, 5]


def test_distinct_keeps_the_first_occurrence_in_order() -> None:
    kept = distinct(make_ragged([[3, 1, 3], [], [3, 3]]))
    assert kept.rows.tolist() == [3, 1, 3]
    assert kept.offsets.tolist() == [0, 2, 2, 3]


def test_distinct_tells_rows_apart_where_pairs_are_beyond_int32() -> None:
    # 5,000 lists of rows up to 2**20 - 1 make pairs up to 5 * 10**9; in 32 bits lists 0 and 4,096
    # would have the same ones. 1.5 million rows are more than are worked on at once.
    rng = np.random.default_rng(0)
    lists = [rng.integers(2**20 - 100, 2**20, 300, dtype=np.int32) for _ in range(5000)]
    lists[4096] = lists[0]
    kept = distinct(Ragged(np.arange(5001) * 300, np.concatenate(lists)))
    assert kept.rows.dtype == np.int32
    for number in (0, 1, 2500, 4096, 4999):
        assert kept[number].tolist() == list(dict.fromkeys(lists[number].tolist()))
    assert kept.lengths.tolist() == [len(np.unique(one)) for one in lists]


def test_top_k_cuts_long_lists_only() -> None:
    cut = top_k(make_ragged([[1, 2, 3], [4]]), 2)
    assert cut.rows.tolist() == [1, 2, 4]
    assert cut.offsets.tolist() == [0, 2, 3]


def test_truth_must_have_a_list_for_each_query() -> None:
    with pytest.raises(ShapeError, match="`truth` must have 1 lists"):
        relevance_of(make_ragged([[1]]), make_ragged([[1], [2]]))
    with pytest.raises(ShapeError, match="`num_relevant` must have shape"):
        recall_at_k(relevance_of(make_ragged([[1]]), make_ragged([[1]])), np.array([1, 1]), 1)


@pytest.mark.parametrize("metric", [precision_at_k, hit_rate_at_k, mrr_at_k])
def test_k_below_1_is_refused(metric: Callable[..., Any]) -> None:
    with pytest.raises(ArgumentError, match="`k` must be above 0, got 0"):
        metric(Ragged(np.array([0, 1]), np.array([True])), 0)
