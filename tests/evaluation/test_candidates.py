"""Cold items ranked among themselves, and the slices of splits that hold users or items out."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from recsys.data import (
    FeatureOptions,
    FilterSettings,
    PreparedDataset,
    RawEntities,
    RawLog,
    SplitSettings,
    prepare_dataset,
    read_prepared,
)
from recsys.evaluation import (
    CatalogueSoftmax,
    EvaluationQueries,
    PopularityRanker,
    RankedCandidates,
    Report,
    Resampling,
    build_queries,
    choose_candidates,
    compare_rankers,
    comparison_table,
    evaluate_retrieval,
    mean_recall,
    quick_metrics,
    rank_by_vectors,
    report_text,
)
from recsys.foundations import ArgumentError, DataError
from recsys.index import ExactIndex

NUM_ITEMS = 50


def make_log(users: NDArray[Any], items: NDArray[Any]) -> RawLog:
    text = pa.large_string()
    table = pa.table(
        {
            "user_id": pa.array([f"u{user}" for user in users], text),
            "item_id": pa.array([f"i{item}" for item in items], text),
            "timestamp": pa.array(np.arange(len(users)), pa.int64()),
        }
    )
    return RawLog(table, "time", {}, len(users), [])


def make_items() -> RawEntities:
    ids = pa.array([f"i{item}" for item in range(NUM_ITEMS)], pa.large_string())
    kinds = pa.array([f"kind {item % 5}" for item in range(NUM_ITEMS)])
    return RawEntities(pa.table({"id": ids, "kind": kinds}), {}, [])


def prepare(folder: Path, log: RawLog, **more: Any) -> PreparedDataset:
    arguments: dict[str, Any] = {
        "items": make_items(),
        "users": None,
        "output": folder / "prepared",
        "filters": FilterSettings(),
        "seed": 0,
        "exclude_seen": True,
        "item_features": {"kind": FeatureOptions()},
    }
    return read_prepared(prepare_dataset(log, **arguments | more))


def make_dataset(folder: Path) -> PreparedDataset:
    """Train on the items below 30; of the others, the test meets those below 45."""
    rng = np.random.default_rng(0)
    train = make_log(rng.integers(0, 40, 400), rng.integers(0, 30, 400))
    parts = {
        part: make_log(rng.integers(0, 40, 120), rng.integers(0, 45, 120))
        for part in ("validation", "test")
    }
    return prepare(folder, train, split=SplitSettings(rule="given"), **parts)


def make_vectors(size: int, seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(size, 6)).astype(np.float32)


def embed(queries: EvaluationQueries) -> NDArray[np.float32]:
    return make_vectors(100, 1)[queries.user_rows]


def evaluate(dataset: PreparedDataset, part: str = "test", **changes: Any) -> Report:
    index = ExactIndex(make_vectors(dataset.num_items, 2))
    arguments: dict[str, Any] = {
        "embed": embed,
        "exact": index,
        "approximate": index,
        "ks": [2, 5],
        "seed": 0,
        "num_resamples": 50,
        "level": 0.95,
        "candidates": "cold",
    }
    return evaluate_retrieval(dataset, part, **arguments | changes)


def cold_rows(dataset: PreparedDataset) -> set[int]:
    """List the candidates that the test has and training has not."""
    tested = {int(row) for row in dataset.test.items}
    return tested - {int(row) for row in dataset.train.items}


def slow_recall(dataset: PreparedDataset, scores: NDArray[Any], k: int) -> float:
    """Rank the cold candidates for each user who chose one; `scores` are [user rows, N]."""
    values, cold = [], cold_rows(dataset)
    for user in np.unique(dataset.test.users):
        relevant = cold & set(dataset.test.items[dataset.test.users == user].tolist())
        seen = set(dataset.validation.items[dataset.validation.users == user].tolist())
        order = sorted(cold - seen, key=lambda row: (-scores[user, row], row))
        if relevant:
            values.append(len(relevant & set(order[:k])) / len(relevant))
    return float(np.mean(values))


def test_settings_are_chosen_by_lists_of_a_hundred_or_of_all_that_is_ranked() -> None:
    assert RankedCandidates("all", None, 300).choice_k == 100
    assert RankedCandidates("cold", np.arange(7), 7).choice_k == 7


def test_only_the_cold_candidates_of_the_part_are_ranked(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path)
    report, cold = evaluate(dataset), cold_rows(dataset)
    assert 10 < len(cold) <= 15
    scores = make_vectors(100, 1).astype(float) @ make_vectors(NUM_ITEMS, 2).T.astype(float)
    for k in (2, 5):
        expected = slow_recall(dataset, scores, k)
        assert report.metrics[f"recall_at_{k}"].value == pytest.approx(expected, rel=1e-12)
        assert report.through_index[f"recall_at_{k}"].value == pytest.approx(expected, rel=1e-12)
        assert report.through_index[f"index_recall_at_{k}"].value == 1.0
        by_row = slow_recall(dataset, np.zeros_like(scores), k)  # none of them is popular
        assert report.popularity[f"recall_at_{k}"].value == pytest.approx(by_row, rel=1e-12)
        assert report.chance[f"recall_at_{k}"] == k / len(cold)
    assert report.metrics["coverage_at_5"].value == 1.0  # of what is ranked
    assert report.metrics["mean_popularity_at_5"].value == 0.0
    counts = report.counts
    users = dataset.test.users
    asked = np.unique(users[np.isin(dataset.test.items, list(cold))])
    assert (counts["num_ranked_items"], counts["num_items"]) == (len(cold), NUM_ITEMS)
    assert counts["num_users"] == len(asked)
    assert counts["num_users_without_relevant"] == len(np.unique(users)) - len(asked) > 0
    assert counts["num_positives"] + counts["num_positives_not_ranked"] == len(dataset.test)
    assert counts["num_unknown_positives"] == 0
    assert report.per_user.num_rows == len(asked)
    assert report.about["candidates"] == "cold"
    assert report.about["ranking"].startswith(f"the {len(cold)} candidates without training events")


def test_the_likelihood_stays_that_of_all_users_and_the_whole_catalogue(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path)
    softmax = CatalogueSoftmax(make_vectors(dataset.num_items, 2), 1.0)
    reports = [evaluate(dataset, softmax=softmax, candidates=rule) for rule in ("all", "cold")]
    assert reports[0].likelihood == reports[1].likelihood != {}
    for name in ("num_scored_events", "num_unknown_events"):
        assert reports[0].counts[name] == reports[1].counts[name]


def test_the_report_names_what_is_ranked_and_the_chance_level(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path)
    report, number = evaluate(dataset), len(cold_rows(dataset))
    text = report_text(report)
    assert f"Cold items ({number} of 50) among themselves, test part: mean over" in text
    assert f"{5 / number:.4f}" in text
    assert "relevant items that are not ranked, left out" in text
    written = json.loads(json.dumps(report.to_json()))
    assert written["chance"] == {"recall_at_2": 2 / number, "recall_at_5": 5 / number}
    assert evaluate(dataset, candidates="all").chance == {}


def test_a_training_loop_measures_the_same(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path)
    queries = build_queries(dataset, "test")
    ranked = choose_candidates(dataset, queries, "cold")
    softmax = CatalogueSoftmax(make_vectors(dataset.num_items, 2), 1.0)
    means = quick_metrics(
        queries,
        embed=embed,
        exact=ExactIndex(softmax.vectors),
        ks=[5],
        exclude_seen=True,
        softmax=softmax,
        ranked=ranked,
    )
    report = evaluate(dataset, softmax=softmax)
    assert means["recall_at_5"] == pytest.approx(report.metrics["recall_at_5"].value, rel=1e-12)
    expected = report.likelihood["log_likelihood"].value
    assert means["log_likelihood"] == pytest.approx(expected, rel=1e-12)


def test_rankers_and_a_model_are_compared_on_the_cold_candidates(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path)
    index = ExactIndex(make_vectors(dataset.num_items, 2))
    counts = np.arange(dataset.num_items)  # the last rows first
    comparison = compare_rankers(
        dataset,
        "test",
        {"last": PopularityRanker(counts)},
        ks=[2, 5],
        resampling=Resampling(0, 50),
        details={},
        skipped={},
        candidates="cold",
        model=lambda ranked: rank_by_vectors(embed, index, ranked),
    )
    report = evaluate(dataset)
    assert comparison.systems["model"].metrics == report.metrics
    assert comparison.systems["popularity"].metrics == report.popularity
    assert comparison.systems["popularity"].behind_model == report.difference
    assert comparison.systems["model"].behind_model == {}
    last = comparison.systems["last"]
    expected = slow_recall(dataset, np.tile(counts, (100, 1)), 5)
    assert last.metrics["recall_at_5"].value == pytest.approx(expected, rel=1e-12)
    gap = report.metrics["recall_at_5"].value - expected
    assert last.behind_model["recall_at_5"].value == pytest.approx(gap, abs=1e-12)
    assert (comparison.counts, comparison.chance) == (report.counts, report.chance)
    plain = comparison.to_json()["systems"]
    assert "difference_of_model" not in plain["model"]
    assert set(plain["last"]["difference_of_model"]) == {"metrics", "intervals"}
    queries = build_queries(dataset, "test")
    ranked = choose_candidates(dataset, queries, "cold")
    found = mean_recall(queries, PopularityRanker(counts), 5, exclude_seen=True, ranked=ranked)
    assert found == pytest.approx(expected, rel=1e-12)
    rows = list(comparison_table(comparison).columns[0].cells)
    assert rows == ["model", "popularity", "last", "chance"]


def test_without_a_cold_item_the_part_is_refused_by_name(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    log = make_log(rng.integers(0, 20, 400), rng.integers(0, 10, 400))
    dataset = prepare(tmp_path, log, split=SplitSettings(rule="random"))
    with pytest.raises(
        DataError, match=r"evaluation\.candidates=cold finds no candidate without tr"
    ):
        evaluate(dataset)
    queries = build_queries(dataset, "test")
    with pytest.raises(ArgumentError, match="`rule` must be one of all, cold"):
        choose_candidates(dataset, queries, "warm")


def test_slices_of_held_out_items_are_cold_and_of_held_out_users_new(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    log = make_log(rng.integers(0, 40, 600), rng.integers(0, NUM_ITEMS, 600))
    cold = SplitSettings(rule="cold_items", test_share=0.2)
    dataset = prepare(tmp_path / "items", log, split=cold)
    for rule, num_ranked in (("all", 50), ("cold", 10)):
        report = evaluate(dataset, candidates=rule)
        warmth = {one.name: one.num_positives for one in report.slices["item_warmth"]}
        assert warmth == {
            "in training": 0,
            "cold: not in training": len(dataset.test),
            "unknown: no candidate": 0,
        }
        assert report.counts["num_ranked_items"] == num_ranked
        assert [one.name for one in report.slices["user_kind"]] == ["known"]
    assert math.isclose(report.chance["recall_at_5"], 0.5)

    folded = SplitSettings(rule="strong_generalization", fold_in_order="random", test_share=0.2)
    dataset = prepare(tmp_path / "users", log, split=folded)
    report = evaluate(dataset, candidates="all")
    assert [one.name for one in report.slices["user_kind"]] == ["new: no training events"]
    assert report.slices["user_kind"][0].num_users == report.counts["num_users"] == 8
    assert report.about["split"]["folded_by"] == "random"
    assert report.about["history"] == "the input part of the held-out users"
