"""The popularity dial in a report: against values worked by hand and a slow evaluation."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from recsys.data import (
    FilterSettings,
    PreparedDataset,
    RawLog,
    SplitSettings,
    prepare_dataset,
    read_prepared,
)
from recsys.evaluation import (
    CatalogueSoftmax,
    DialPoint,
    EvaluationQueries,
    Report,
    evaluate_retrieval,
)
from recsys.foundations import ArgumentError
from recsys.index import ExactIndex

Event = tuple[str, str]
TEMPERATURE = 0.5


def make_log(events: Sequence[Event]) -> RawLog:
    users, items = (pa.array(ids, pa.large_string()) for ids in zip(*events, strict=True))
    table = pa.table({"user_id": users, "item_id": items, "timestamp": range(len(events))})
    return RawLog(table, "time", {}, len(events), [])


def make_dataset(
    folder: Path, train: Sequence[Event], test: Sequence[Event], *, exclude_seen: bool = True
) -> PreparedDataset:
    path = prepare_dataset(
        make_log(train),
        items=None,
        users=None,
        output=folder / "prepared",
        filters=FilterSettings(duplicates="keep_all"),
        split=SplitSettings(rule="given"),
        seed=0,
        exclude_seen=exclude_seen,
        test=make_log(test),
    )
    return read_prepared(path)


def make_random_dataset(folder: Path, **more: Any) -> PreparedDataset:
    """Make 700 users, so that there are two blocks, and 30 items of which low numbers are liked."""
    rng = np.random.default_rng(0)
    parts = []
    for count in (4000, 1500):
        users, items = rng.integers(0, 700, count), (30 * rng.random(count) ** 3).astype(int)
        parts.append([(f"u{u}", f"i{i}") for u, i in zip(users, items, strict=True)])
    strangers = [(f"new{n}", f"i{n}") for n in range(20)]
    return make_dataset(folder, parts[0], parts[1] + strangers, **more)


def evaluate(
    dataset: PreparedDataset,
    vectors: NDArray[np.float32],
    embed: Any,
    alphas: Sequence[float],
    **changes: Any,
) -> Report:
    arguments: dict[str, Any] = {
        "embed": embed,
        "exact": ExactIndex(vectors),
        "approximate": None,
        "ks": [3, 5],
        "seed": 0,
        "num_resamples": 200,
        "level": 0.95,
        "softmax": CatalogueSoftmax(vectors, TEMPERATURE),
        "popularity_alphas": alphas,
    }
    return evaluate_retrieval(dataset, "test", **arguments | changes)


class Random:
    """A model with a random vector for each user row and item."""

    def __init__(self, dataset: PreparedDataset) -> None:
        rng = np.random.default_rng(1)
        self.users = rng.normal(size=(len(dataset.users), 6)).astype(np.float32)
        self.items = rng.normal(size=(dataset.num_items, 6)).astype(np.float32)

    def embed(self, queries: EvaluationQueries) -> NDArray[np.float32]:
        return self.users[queries.user_rows]


def values(points: Sequence[DialPoint], name: str) -> list[float]:
    return [point.metrics[name].value for point in points]


def test_a_tiny_catalogue_worked_by_hand(tmp_path: Path) -> None:
    # Items a, b, c with 8, 1, 1 training events; scores 1.0, 0.8, 0.1 for both users, T = 0.5.
    # Less log 8 = 2.079: with alpha 0.5 item a loses 0.52 against the others, and b comes first.
    train = [("w", "a")] * 8 + [("x", "b"), ("x", "c"), ("u", "d"), ("v", "d")]
    dataset = make_dataset(tmp_path, train, [("u", "a"), ("v", "b")])
    score = {"a": 1.0, "b": 0.8, "c": 0.1, "d": 9.0}  # d is seen by both
    names = dataset.items.vocabulary.ids.to_pylist()
    vectors = np.array([[score[name]] for name in names], np.float32)

    def embed(queries: EvaluationQueries) -> NDArray[np.float32]:
        return np.ones((len(queries), 1), np.float32)

    report = evaluate(dataset, vectors, embed, [0.5, -0.5], ks=[1, 2])
    points = report.popularity_dial
    assert [point.alpha for point in points] == [-0.5, 0.0, 0.5]
    # In pairs: at -0.5 and 0 both get a, b; at 0.5 they get b, a (1.0 - 0.52 = 0.48, c 0.1).
    assert values(points, "recall_at_2") == [1.0, 1.0, 1.0]
    ndcg = (1 + 1 / math.log2(3)) / 2
    assert values(points, "ndcg_at_2") == pytest.approx([ndcg, ndcg, ndcg])
    single = evaluate(dataset, vectors, embed, [0.5, 1.0], ks=[1]).popularity_dial
    assert values(single, "mean_popularity_at_1") == [8.0, 1.0, 1.0]
    # a: 3 of 4 less popular, half of itself. b, c: equal, none below. d has 2 events.
    assert values(single, "popularity_percentile_at_1") == [3.5 / 4, 1 / 4, 1 / 4]
    assert values(single, "coverage_at_1") == [1 / 4] * 3
    assert values(single, "recall_at_1") == [0.5, 0.5, 0.5]
    assert single[1].difference["recall_at_1"].value == 0


def slow_recall(
    dataset: PreparedDataset, model: Random, alpha: float, k: int, *, exclude_seen: bool
) -> tuple[dict[int, float], set[int]]:
    """Rank user by user: recall@k of each, and all that is shown."""
    counts = dataset.items.counts[: dataset.num_items]
    share = np.maximum(counts, 0.5) / np.maximum(counts, 0.5).sum()
    recall, shown = {}, set()
    for user in np.unique(dataset.test.users):
        seen = set(dataset.train.items[dataset.train.users == user].tolist())
        scores = model.items.astype(float) @ model.users[user].astype(float)
        scores = scores - alpha * TEMPERATURE * np.log(share)
        if user >= dataset.num_users:
            scores = counts.astype(float)
        order = sorted(range(dataset.num_items), key=lambda row: (-scores[row], row))
        best = [row for row in order if not (exclude_seen and row in seen)][:k]
        relevant = set(dataset.test.items[dataset.test.users == user].tolist())
        recall[int(user)] = len(relevant & set(best)) / len(relevant)
        shown |= set(best)
    return recall, shown


@pytest.mark.parametrize("exclude_seen", [True, False])
def test_equals_a_slow_evaluation_user_by_user(tmp_path: Path, exclude_seen: bool) -> None:
    dataset = make_random_dataset(tmp_path, exclude_seen=exclude_seen)
    model = Random(dataset)
    points = evaluate(dataset, model.items, model.embed, [1.0, -2.0, 0.3]).popularity_dial
    assert [point.alpha for point in points] == [-2.0, 0.0, 0.3, 1.0]
    slow = {
        point.alpha: slow_recall(dataset, model, point.alpha, 5, exclude_seen=exclude_seen)
        for point in points
    }
    for point in points:
        recall, shown = slow[point.alpha]
        mean = np.mean(list(recall.values()))
        assert point.metrics["recall_at_5"].value == pytest.approx(mean, rel=1e-12)
        assert point.metrics["coverage_at_5"].value == len(shown) / dataset.num_items
        if point.alpha != 0:
            gap = np.mean([recall[user] - slow[0.0][0][user] for user in recall])
            difference = point.difference["recall_at_5"]
            assert difference.value == pytest.approx(gap, abs=1e-12)
            assert difference.low is not None
            assert difference.high is not None
            assert difference.low <= difference.value <= difference.high


def test_what_is_shown_is_the_less_popular_the_larger_alpha(tmp_path: Path) -> None:
    dataset = make_random_dataset(tmp_path)
    model = Random(dataset)
    report = evaluate(dataset, model.items, model.embed, [-3.0, -1.0, 1.0, 3.0])
    for name in ("mean_popularity_at_5", "popularity_percentile_at_5"):
        falling = values(report.popularity_dial, name)
        assert falling == sorted(falling, reverse=True)
        assert falling[0] > 1.2 * falling[-1]


def test_at_0_stand_the_numbers_of_the_report_and_nothing_else_changes(tmp_path: Path) -> None:
    dataset = make_random_dataset(tmp_path)
    model = Random(dataset)
    plain = evaluate(dataset, model.items, model.embed, [])
    report = evaluate(dataset, model.items, model.embed, [0.5])
    assert plain.popularity_dial == []
    assert report.to_json() | {"popularity_dial": []} == plain.to_json()
    [at_0, _] = report.popularity_dial
    for name in ("recall_at_5", "ndcg_at_5", "coverage_at_5", "mean_popularity_at_5"):
        assert at_0.metrics[name] == report.metrics[name]
    assert at_0.difference == {}


def test_the_section_of_the_file_has_values_intervals_and_paired_differences(
    tmp_path: Path,
) -> None:
    dataset = make_random_dataset(tmp_path)
    model = Random(dataset)
    evaluate(dataset, model.items, model.embed, [0.5]).write(tmp_path / "report.json")
    [at_0, other] = json.loads((tmp_path / "report.json").read_text())["popularity_dial"]
    names = {"recall_at_5", "ndcg_at_5", "mean_popularity_at_5", "popularity_percentile_at_5"}
    assert at_0["alpha"] == 0
    assert at_0["difference_to_0"] == {"metrics": {}, "intervals": {}}
    assert other["alpha"] == 0.5
    assert other["metrics"].keys() == names | {"coverage_at_5"}
    assert other["intervals"].keys() == names
    assert other["difference_to_0"]["metrics"].keys() == names
    assert other["difference_to_0"]["intervals"].keys() == names


def test_the_dial_is_refused_without_a_temperature_or_out_of_range(tmp_path: Path) -> None:
    dataset = make_random_dataset(tmp_path)
    model = Random(dataset)
    with pytest.raises(ArgumentError, match="`popularity_alphas` must come with `softmax`"):
        evaluate(dataset, model.items, model.embed, [0.5], softmax=None)
    with pytest.raises(ArgumentError, match="`alpha` must lie between -10 and 10, got 12"):
        evaluate(dataset, model.items, model.embed, [12.0])
