"""Ranked lists against the truth, without a model."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from recsys.evaluation import Report, evaluate_ranked, read_ranked, read_truth
from recsys.foundations import ArgumentError, DataError, MissingFileError

Rows = Sequence[tuple[object, ...]]

B20 = Path(__file__).parents[1] / "cases" / "B20"


def make_table(rows: Rows, *names: str) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return pa.table({name: list(column) for name, column in zip(names, columns, strict=True)})


def evaluate(ranked: Rows, truth: Rows, k: int) -> Report:
    return evaluate_ranked(
        make_table(ranked, "user_id", "item_id", "rank"),
        make_table(truth, "user_id", "item_id"),
        [k],
    )


def test_five_users_by_hand() -> None:
    report = evaluate_ranked(
        read_ranked(B20 / "ranked.csv"), read_truth(B20 / "truth.csv"), [1, 3, 5]
    )
    # recall, capped recall, precision, hit rate, MRR, NDCG: means over A, B, C and E.
    expected = {
        1: [0.406250, 0.750000, 0.750000, 0.750000, 0.750000, 0.750000],
        3: [0.437500, 0.541667, 0.333333, 0.750000, 0.750000, 0.594627],
        5: [0.437500, 0.475000, 0.200000, 0.750000, 0.750000, 0.541573],
    }
    names = ["recall", "capped_recall", "precision", "hit_rate", "mrr", "ndcg"]
    for k, wanted in expected.items():
        got = [report.metrics[f"{name}_at_{k}"].value for name in names]
        assert_allclose(got, wanted, atol=1e-6, rtol=0)
    rows = {row["user_id"]: row for row in report.per_user.to_pylist()}
    per_user = {
        "A": [1.000000, 1.000000, 0.200000, 1.000000, 1.000000, 1.000000],
        "B": [0.250000, 0.400000, 0.400000, 1.000000, 1.000000, 0.553146],
        "C": [0.000000, 0.000000, 0.000000, 0.000000, 0.000000, 0.000000],
        "E": [0.500000, 0.500000, 0.200000, 1.000000, 1.000000, 0.613147],
    }
    assert sorted(rows) == sorted(per_user)
    for user, wanted in per_user.items():
        assert_allclose([rows[user][f"{name}_at_5"] for name in names], wanted, atol=1e-6, rtol=0)
    assert report.counts["num_users_without_relevant"] == 1
    assert report.counts["num_repeats_in_lists"] == 4
    assert report.counts["num_short_lists"] == 1


def test_a_user_without_a_list_counts_as_zero_and_is_counted() -> None:
    report = evaluate([("a", "x", 1)], [("a", "x"), ("b", "x")], 1)
    assert report.metrics["recall_at_1"].value == 0.5
    assert report.counts["num_users_without_list"] == 1


def test_a_repeated_truth_pair_counts_once() -> None:
    report = evaluate([("a", "x", 1)], [("a", "x"), ("a", "x"), ("a", "y")], 1)
    assert report.metrics["recall_at_1"].value == 0.5
    assert report.counts["num_positives"] == 2


def test_rank_orders_the_list_whatever_the_order_of_the_rows() -> None:
    report = evaluate([("a", "y", 7), ("a", "x", 2)], [("a", "x")], 1)
    assert report.metrics["recall_at_1"].value == 1.0


def test_score_ranks_falling_and_equal_scores_keep_the_order_of_the_input() -> None:
    ranked = make_table(
        [("a", "z", 0.1), ("a", "x", 0.9), ("b", "x", 0.5), ("b", "z", 0.5)],
        *("user_id", "item_id", "score"),
    )
    report = evaluate_ranked(
        ranked, make_table([("a", "x"), ("b", "x")], "user_id", "item_id"), [1]
    )
    assert report.metrics["recall_at_1"].value == 1.0
    assert report.about["ranking"] == "the lists given, by score"


def test_rank_wins_over_score() -> None:
    ranked = make_table(
        [("a", "x", 1, 0.1), ("a", "z", 2, 0.9)], "user_id", "item_id", "rank", "score"
    )
    report = evaluate_ranked(ranked, make_table([("a", "x")], "user_id", "item_id"), [1])
    assert report.metrics["recall_at_1"].value == 1.0


def test_ids_are_compared_digit_for_digit(tmp_path: Path) -> None:
    # "007" is not 7, "NA" is an id, and a 19-digit integer keeps its last digit.
    (tmp_path / "ranked.csv").write_text(
        "user_id,item_id,rank\n007,NA,1\n7,b,1\n1,9223372036854775806,1\n"
    )
    (tmp_path / "truth.tsv").write_text("user_id\titem_id\n007\tNA\n7\tNA\n")
    ranked = read_ranked(tmp_path / "ranked.csv")
    report = evaluate_ranked(ranked, read_truth(tmp_path / "truth.tsv"), [1])
    recall = dict(
        zip(
            report.per_user["user_id"].to_pylist(),
            report.per_user["recall_at_1"].to_pylist(),
            strict=True,
        )
    )
    assert recall == {"007": 1.0, "7": 0.0}
    pq.write_table(
        make_table([(1, 9223372036854775806)], "user_id", "item_id"), tmp_path / "t.parquet"
    )
    report = evaluate_ranked(ranked, read_truth(tmp_path / "t.parquet"), [1])
    assert report.metrics["recall_at_1"].value == 1.0


def test_the_order_of_users_and_rows_of_the_truth_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    ranked = [
        (f"u{u}", f"i{i}", r) for u in range(20) for r, i in enumerate(rng.permutation(30)[:10])
    ]
    truth = [(f"u{u}", f"i{i}") for u in range(20) for i in rng.permutation(30)[:3]]
    first = evaluate(ranked, truth, 5)
    second = evaluate(ranked, [truth[i] for i in rng.permutation(len(truth))], 5)
    for name, estimate in first.metrics.items():
        assert second.metrics[name].value == pytest.approx(estimate.value, rel=1e-12)
    low, high = first.metrics["recall_at_5"].low, first.metrics["recall_at_5"].high
    assert low is not None
    assert high is not None
    assert low < first.metrics["recall_at_5"].value < high


def test_refusals_name_file_row_and_value(tmp_path: Path) -> None:
    truth = make_table([("a", "x")], "user_id", "item_id")
    path = tmp_path / "ranked.csv"
    path.write_text("user_id,item_id,rank\na,x,1\na,y,two\n")
    with pytest.raises(DataError, match=r"ranked.csv, row 2: column 'rank' holds 'two'"):
        read_ranked(path)
    path.write_text("user_id,item_id,rank\na,,1\n")
    with pytest.raises(DataError, match="row 1: column 'item_id' holds no value"):
        read_ranked(path)
    path.write_text("user_id,item_id,rank\na,x,1\na,y\n")
    with pytest.raises(DataError, match="2 fields instead of 3"):
        read_ranked(path)
    with pytest.raises(DataError, match="must have a column 'rank' or 'score'"):
        evaluate_ranked(truth, truth, [1])
    with pytest.raises(DataError, match="ranked has no column 'item_id'"):
        evaluate_ranked(make_table([("a",)], "user_id"), truth, [1])
    with pytest.raises(MissingFileError, match=r"absent\.csv"):
        read_truth(tmp_path / "absent.csv")


def test_an_empty_truth_and_an_empty_k_are_refused() -> None:
    ranked = make_table([("a", "x", 1)], "user_id", "item_id", "rank")
    with pytest.raises(DataError, match="truth is empty"):
        evaluate_ranked(ranked, make_table([("a", "x")], "user_id", "item_id").slice(0, 0), [1])
    with pytest.raises(ArgumentError, match="`ks` must hold numbers of at least 1"):
        evaluate_ranked(ranked, make_table([("a", "x")], "user_id", "item_id"), [0])


def test_an_empty_ranked_file_scores_zero() -> None:
    ranked = make_table([("a", "x", 1)], "user_id", "item_id", "rank").slice(0, 0)
    report = evaluate_ranked(ranked, make_table([("a", "x")], "user_id", "item_id"), [1, 10])
    assert report.metrics["recall_at_10"].value == 0.0
    assert report.counts["num_users_without_list"] == 1
