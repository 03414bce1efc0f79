"""A model's ranking against what users chose, on prepared data sets of a few events."""

import itertools
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
    EvaluationQueries,
    Report,
    Resampling,
    build_queries,
    compare_reports,
    evaluate_ranked,
    evaluate_retrieval,
    quick_metrics,
)
from recsys.foundations import ArgumentError, DataError, Ragged
from recsys.index import ExactIndex, Hits

Event = tuple[str, str, int]


def make_log(events: Sequence[Event], clock: str = "time") -> RawLog:
    users, items, times = zip(*events, strict=True)
    text = pa.large_string()
    columns = {"user_id": pa.array(users, text), "item_id": pa.array(items, text)}
    if clock != "none":
        columns["timestamp"] = pa.array(times, pa.int64())
    return RawLog(pa.table(columns), clock, {}, len(events), [])


def make_entities(ids: Sequence[str], **columns: Sequence[Any]) -> RawEntities:
    table = pa.table({"id": pa.array(ids, pa.large_string()), **columns})
    return RawEntities(table, {}, [])


def make_dataset(
    folder: Path,
    train: Sequence[Event],
    validation: Sequence[Event] = (),
    test: Sequence[Event] = (),
    *,
    exclude_seen: bool = True,
    items: RawEntities | None = None,
    users: RawEntities | None = None,
    **more: Any,
) -> PreparedDataset:
    parts = {"validation": validation, "test": test}
    given: dict[str, Any] = {name: make_log(events) for name, events in parts.items() if events}
    path = prepare_dataset(
        make_log(train),
        items=items,
        users=users,
        output=folder / "prepared",
        filters=FilterSettings(duplicates="keep_all"),
        split=SplitSettings(rule="given"),
        seed=0,
        exclude_seen=exclude_seen,
        **given,
        **more,
    )
    return read_prepared(path)


def make_random_dataset(folder: Path, **more: Any) -> PreparedDataset:
    rng = np.random.default_rng(0)
    parts = []
    for part, count in enumerate((400, 60, 90)):
        users, items = rng.integers(0, 40, count), (60 * rng.random(count) ** 2).astype(int)
        parts.append(
            [
                (f"u{u}", f"i{i}", 1000 * part + n)
                for n, (u, i) in enumerate(zip(users, items, strict=True))
            ]
        )
    return make_dataset(folder, *parts, **more)


def make_vectors(size: int, seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(size, 6)).astype(np.float32)


class Random:
    """A model with a random vector for each user row and item."""

    def __init__(self, dataset: PreparedDataset) -> None:
        self.users = make_vectors(len(dataset.users), 1)
        self.items = make_vectors(dataset.num_items, 2)
        self.block_sizes: list[int] = []

    def embed(self, queries: EvaluationQueries) -> NDArray[np.float32]:
        self.block_sizes.append(len(queries))
        return self.users[queries.user_rows]


class FirstLost:
    """An index that never finds the best candidate."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self._exact = ExactIndex(vectors)
        self.num_candidates, self.dim = vectors.shape

    def search(
        self,
        query_vectors: NDArray[np.float32],
        k: int,
        *,
        exclude: Ragged | None = None,
        allowed: Any = None,
    ) -> Hits:
        hits = self._exact.search(query_vectors, k + 1, exclude=exclude, allowed=allowed)
        kept = hits.ranks() > 1
        lengths = np.maximum(hits.lengths - 1, 0)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return Hits(offsets, hits.candidate_rows[kept], hits.scores[kept])


def evaluate(dataset: PreparedDataset, part: str = "test", **changes: Any) -> Report:
    model = Random(dataset)
    arguments: dict[str, Any] = {
        "embed": model.embed,
        "exact": ExactIndex(model.items),
        "approximate": None,
        "ks": [1, 3, 5],
        "seed": 0,
        "num_resamples": 200,
        "level": 0.95,
    }
    return evaluate_retrieval(dataset, part, **arguments | changes)


def slow_lists(
    dataset: PreparedDataset, *, popular: bool, exclude_seen: bool
) -> dict[int, list[int]]:
    """Rank the catalogue for each user of the test part, user by user."""
    model = Random(dataset)
    lists = {}
    for user in np.unique(dataset.test.users):
        scores = model.items.astype(float) @ model.users[user].astype(float)
        if popular:
            scores = dataset.items.counts[: dataset.num_items].astype(float)
        seen = {
            int(item)
            for events in (dataset.train, dataset.validation)
            for item in events.items[events.users == user]
        }
        order = sorted(range(dataset.num_items), key=lambda row: (-scores[row], row))
        lists[int(user)] = [row for row in order if not (exclude_seen and row in seen)]
    return lists


def slow_means(dataset: PreparedDataset, lists: dict[int, list[int]], k: int) -> dict[str, float]:
    values: dict[str, list[float]] = {"recall": [], "ndcg": [], "mean_popularity": []}
    for user, shown in lists.items():
        relevant = set(dataset.test.items[dataset.test.users == user].tolist())
        found = [rank for rank, row in enumerate(shown[:k], start=1) if row in relevant]
        best = sum(1 / math.log2(r + 1) for r in range(1, min(k, len(relevant)) + 1))
        values["recall"].append(len(found) / len(relevant))
        values["ndcg"].append(sum(1 / math.log2(rank + 1) for rank in found) / best)
        values["mean_popularity"].append(float(np.mean(dataset.items.counts[shown[:k]])))
    return {name: float(np.mean(some)) for name, some in values.items()}


@pytest.mark.parametrize("exclude_seen", [True, False])
def test_equals_a_slow_evaluation_user_by_user(tmp_path: Path, exclude_seen: bool) -> None:
    dataset = make_random_dataset(tmp_path, exclude_seen=exclude_seen)
    report = evaluate(dataset)
    for popular, estimates in ((False, report.metrics), (True, report.popularity)):
        lists = slow_lists(dataset, popular=popular, exclude_seen=exclude_seen)
        for k in (1, 3, 5):
            for name, value in slow_means(dataset, lists, k).items():
                assert estimates[f"{name}_at_{k}"].value == pytest.approx(value, rel=1e-12)
            shown = {row for one in lists.values() for row in one[:k]}
            assert estimates[f"coverage_at_{k}"].value == len(shown) / dataset.num_items
    for name, estimate in report.difference.items():
        gap = report.metrics[name].value - report.popularity[name].value
        assert estimate.value == pytest.approx(gap, abs=1e-12)
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.low <= estimate.value <= estimate.high


def test_the_lists_scored_as_a_file_give_the_same_numbers(tmp_path: Path) -> None:
    dataset = make_random_dataset(tmp_path)
    lists = slow_lists(dataset, popular=False, exclude_seen=True)
    rows = [(user, row, rank) for user, one in lists.items() for rank, row in enumerate(one)]
    users, items, ranks = map(np.array, zip(*rows, strict=True))
    ranked = {"user_id": dataset.users.vocabulary.ids_of(users), "rank": ranks}
    ranked["item_id"] = dataset.items.vocabulary.ids_of(items)
    truth = {"user_id": dataset.users.vocabulary.ids_of(dataset.test.users)}
    truth["item_id"] = dataset.items.vocabulary.ids_of(dataset.test.items)
    outside = evaluate_ranked(pa.table(ranked), pa.table(truth), [1, 3, 5])
    report = evaluate(dataset)
    for name, estimate in outside.metrics.items():
        assert report.metrics[name].value == pytest.approx(estimate.value, rel=1e-12)


def test_what_is_known_of_a_user_depends_on_the_part(tmp_path: Path) -> None:
    dataset = make_dataset(
        tmp_path,
        train=[("u", "b", 2), ("u", "a", 1), ("u", "a", 3), ("v", "c", 1)],
        validation=[("u", "c", 4)],
        test=[("u", "d", 9), ("u", "d", 8), ("u", "b", 7), ("w", "a", 7)],
    )
    items = dataset.items.vocabulary

    def ids(lists: Ragged, query: int) -> list[str]:
        return list(items.ids_of(lists[query]).to_pylist())

    queries = build_queries(dataset, "validation")
    assert dataset.users.vocabulary.ids_of(queries.user_rows).to_pylist() == ["u"]
    assert ids(queries.histories, 0) == ["a", "b", "a"]
    assert sorted(ids(queries.seen, 0)) == ["a", "b"]

    queries = build_queries(dataset, "test")
    names = dataset.users.vocabulary.ids_of(queries.user_rows).to_pylist()
    first, new = names.index("u"), names.index("w")
    assert ids(queries.histories, first) == ["a", "b", "a", "c"]
    assert ids(queries.truth, first) == ["b", "d"]  # twice chosen, counted once
    assert queries.known.tolist() == [name == "u" for name in names]
    assert queries.nothing_known().tolist() == [name == "w" for name in names]
    assert ids(queries.histories, new) == []


def test_parts_that_overlap_in_time_are_merged_into_one_history(tmp_path: Path) -> None:
    dataset = make_dataset(
        tmp_path,
        train=[("u", "a", 10), ("u", "b", 30)],
        validation=[("u", "c", 20), ("u", "d", 30)],
        test=[("u", "a", 40)],
    )
    queries = build_queries(dataset, "test")
    kept = dataset.items.vocabulary.ids_of(queries.histories[0]).to_pylist()
    # c and d were never in training, so that they are no candidates and in no history.
    assert kept == ["a", "b"]
    dataset = make_dataset(
        tmp_path / "again",
        train=[("u", "a", 10), ("u", "b", 30), ("v", "c", 1), ("v", "d", 1)],
        validation=[("u", "c", 20), ("u", "d", 30)],
        test=[("u", "a", 40)],
    )
    queries = build_queries(dataset, "test")
    kept = dataset.items.vocabulary.ids_of(queries.histories[0]).to_pylist()
    assert kept == ["a", "c", "b", "d"]
    assert queries.history_times is not None
    assert queries.history_times[0].tolist() == [10, 20, 30, 30]


def test_times_of_histories_go_along_where_the_clock_tells_time(tmp_path: Path) -> None:
    dataset = make_random_dataset(tmp_path)
    queries = build_queries(dataset, "test")
    assert queries.history_times is not None
    assert np.array_equal(queries.history_times.offsets, queries.histories.offsets)
    met: dict[tuple[int, int], list[int]] = {}
    for part in (dataset.train, dataset.validation):
        assert part.timestamps is not None
        for user, item, time in zip(part.users, part.items, part.timestamps, strict=True):
            met.setdefault((int(user), int(item)), []).append(int(time))
    for taken in (queries, queries.take(np.arange(len(queries))[::-1]), queries.slice(7, 20)):
        assert taken.history_times is not None
        for place, user in enumerate(taken.user_rows):
            times = taken.history_times[place].tolist()
            assert times == sorted(times)
            pairs = list(zip(taken.histories[place], times, strict=True))
            assert all(time in met[int(user), int(item)] for item, time in pairs)
            assert len(set(pairs)) == len(pairs)
    ordered = PreparedDataset(**{**vars(dataset), "clock": "order"})
    assert build_queries(ordered, "test").history_times is None
    assert build_queries(ordered, "test").take(np.array([1, 0])).history_times is None


def test_held_out_users_bring_their_own_input(tmp_path: Path) -> None:
    events = [(f"u{user}", f"i{(user + n) % 7}", n) for user in range(20) for n in range(5)]
    path = prepare_dataset(
        make_log(events),
        items=None,
        users=None,
        output=tmp_path / "prepared",
        filters=FilterSettings(),
        split=SplitSettings(rule="strong_generalization", fold_in=0.6),
        seed=0,
        exclude_seen=True,
    )
    dataset = read_prepared(path)
    queries = build_queries(dataset, "test")
    assert len(queries) == 2
    assert not queries.known.any()
    assert queries.histories.lengths.tolist() == [3, 3]
    assert queries.truth.lengths.tolist() == [2, 2]
    assert evaluate(dataset).about["history"] == "the input part of the held-out users"


def test_unknown_items_stay_in_the_truth_and_are_counted(tmp_path: Path) -> None:
    dataset = make_dataset(
        tmp_path,
        train=[("u", "a", 1), ("v", "b", 1)],
        test=[("u", "b", 5), ("u", "never met", 5), ("v", "b", 5)],
    )
    report = evaluate(dataset, ks=[2])
    # u finds b, of two relevant items; v had b already, which is therefore never shown.
    assert report.metrics["recall_at_2"].value == (0.5 + 0) / 2
    assert report.counts["num_unknown_positives"] == 1
    assert report.counts["num_seen_positives"] == 1
    assert report.counts["num_positives"] == 3
    [warmth] = [s for s in report.slices["item_warmth"] if s.name.startswith("unknown")]
    assert (warmth.num_positives, warmth.recall["model"].value) == (1, 0.0)


def test_users_of_whom_nothing_is_known_get_popular_items(tmp_path: Path) -> None:
    train = [("u", "a", 1), ("v", "a", 1), ("v", "b", 2), ("x", "c", 3)]
    dataset = make_dataset(tmp_path, train=train, test=[("new", "a", 5), ("u", "b", 6)])
    report = evaluate(dataset, ks=[1])
    rows = {row["user_id"]: row for row in report.per_user.to_pylist()}
    assert rows["new"]["fallback"]
    assert not rows["u"]["fallback"]
    assert rows["new"]["recall_at_1"] == 1.0
    assert report.counts["num_fallback_users"] == 1
    kinds = {one.name: one for one in report.slices["user_kind"]}
    assert kinds["new: no training events"].recall["model"].value == 1.0

    users = make_entities(["new", "other"], segment=["gold", "gold"])
    dataset = make_dataset(
        tmp_path / "featured",
        train=[*train, ("other", "c", 4)],
        test=[("new", "a", 5)],
        users=users,
        user_features={"segment": FeatureOptions()},
    )
    assert evaluate(dataset, ks=[1]).counts["num_fallback_users"] == 0  # a feature is known


def test_a_log_full_of_repeats_is_pointed_out_where_seen_items_are_left_out(tmp_path: Path) -> None:
    train = [("u", "a", 1), ("v", "b", 1)]
    dataset = make_dataset(tmp_path, train=train, test=[("u", "a", 5), ("v", "a", 5)])
    assert evaluate(dataset).warnings == (
        "50% of the relevant items are ones that the user had already, and those are never shown; "
        "if repeats are the point, set exclude_seen=false.",
    )
    assert evaluate(dataset, exclude_seen=False).warnings == ()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("numeric", [1.5, 2.5, None]),
        ("multi", [["red"], ["red"], []]),
        ("bucket", [1.0, 2.0, None]),
    ],
)
def test_one_feature_of_any_kind_is_enough_to_know_something(
    tmp_path: Path, kind: str, values: list[Any]
) -> None:
    dataset = make_dataset(
        tmp_path,
        train=[("u", "a", 1), ("v", "b", 1)],
        test=[("told", "a", 5), ("untold", "a", 5)],
        users=make_entities(["u", "told", "untold"], trait=values),
        user_features={"trait": FeatureOptions(kind=kind)},
    )
    queries = build_queries(dataset, "test")
    names = dataset.users.vocabulary.ids_of(queries.user_rows).to_pylist()
    unknown = dict(zip(names, queries.nothing_known(), strict=True))
    assert unknown == {"told": False, "untold": True}


def test_cold_items_of_the_catalogue_can_be_found(tmp_path: Path) -> None:
    dataset = make_dataset(
        tmp_path,
        train=[("u", "a", 1), ("v", "b", 1)],
        test=[("u", "cold", 5)],
        items=make_entities(["a", "b", "cold"], colour=["red", "blue", "red"]),
        item_features={"colour": FeatureOptions()},
    )
    report = evaluate(dataset, ks=[2])
    assert report.counts["num_items"] == 3
    [cold] = [one for one in report.slices["item_warmth"] if one.name.startswith("cold")]
    assert cold.num_positives == 1
    assert cold.recall["model"].value == 1.0  # two candidates are left, two are shown


def test_the_loss_is_split_into_model_and_index(tmp_path: Path) -> None:
    dataset = make_random_dataset(tmp_path)
    items = Random(dataset).items
    report = evaluate(dataset, approximate=FirstLost(items))
    # The best one is always missing: of the top 1 nothing is found, of the top 5 four.
    assert report.through_index["index_recall_at_1"].value == 0
    assert report.through_index["index_recall_at_5"].value == pytest.approx(4 / 5)
    for k in (1, 5):
        lost, name = report.through_index[f"recall_lost_at_{k}"], f"recall_at_{k}"
        between = report.metrics[name].value - report.through_index[name].value
        assert lost.value == pytest.approx(between)
        assert lost.low is not None
        assert lost.high is not None
        assert lost.low <= lost.value <= lost.high
    same = evaluate(dataset, approximate=ExactIndex(items))
    nothing = same.through_index["recall_lost_at_5"]
    assert (nothing.value, nothing.low, nothing.high) == (0, 0, 0)
    assert same.through_index["index_recall_at_5"].value == 1
    for name, estimate in same.metrics.items():
        assert same.through_index[name] == estimate


def test_constant_scores_are_found_out(tmp_path: Path) -> None:
    dataset = make_random_dataset(tmp_path)
    flat = np.ones((dataset.num_items, 6), np.float32)
    report = evaluate(dataset, exact=ExactIndex(flat), ks=[5, 20])
    assert report.ties["tied_at_5"] == report.counts["num_users"]
    assert report.ties["pessimistic_recall_at_20"] == 0
    assert sum("many scores are equal" in sentence for sentence in report.warnings) == 2
    assert not any("equal" in sentence for sentence in evaluate(dataset).warnings)


def test_slices_add_up(tmp_path: Path) -> None:
    report = evaluate(make_random_dataset(tmp_path))
    positives = report.counts["num_positives"]
    for name, total in (("item_warmth", positives), ("user_activity", positives)):
        assert sum(one.num_positives for one in report.slices[name]) == total
    assert sum(one.num_users for one in report.slices["user_kind"]) == report.counts["num_users"]
    [warm, *_] = report.slices["item_warmth"]
    deciles = report.slices["item_popularity_decile"]
    assert sum(one.num_positives for one in deciles) == warm.num_positives
    hits = sum(one.num_positives * one.recall["model"].value for one in deciles if one.recall)
    assert hits == pytest.approx(warm.num_positives * warm.recall["model"].value)
    ends = [one.bounds for one in deciles if one.bounds is not None]
    assert all(a[1] is not None and a[1] <= b[0] for a, b in itertools.pairwise(ends))


def test_works_in_blocks_and_gives_the_means_alone_for_a_training_loop(tmp_path: Path) -> None:
    train = [(f"u{u}", f"i{u % 9}", 1) for u in range(1100)]
    dataset = make_dataset(tmp_path, train, test=[(f"u{u}", f"i{u % 7}", 2) for u in range(1100)])
    model = Random(dataset)
    report = evaluate(dataset, embed=model.embed)
    assert model.block_sizes == [512, 512, 76]
    quick = quick_metrics(
        build_queries(dataset, "test"),
        embed=model.embed,
        exact=ExactIndex(model.items),
        ks=[1, 3],
        exclude_seen=True,
    )
    for name, value in quick.items():
        assert report.metrics[name].value == pytest.approx(value, rel=1e-12)


def test_two_reports_of_the_same_users_are_compared_in_pairs(tmp_path: Path) -> None:
    dataset = make_random_dataset(tmp_path)
    first, second = evaluate(dataset), evaluate(dataset, exclude_seen=False)
    difference = compare_reports(first, second, Resampling(0))["recall_at_5"]
    gap = first.metrics["recall_at_5"].value - second.metrics["recall_at_5"].value
    assert difference.value == pytest.approx(gap)
    same = compare_reports(first, first, Resampling(0))["recall_at_5"]
    assert (same.value, same.low, same.high) == (0, 0, 0)
    with pytest.raises(DataError, match="different users"):
        compare_reports(first, evaluate(dataset, "validation"), Resampling(0))


def test_the_report_is_json_without_nan_and_its_flat_names_are_legal(tmp_path: Path) -> None:
    dataset = make_random_dataset(tmp_path)
    report = evaluate(dataset, approximate=ExactIndex(Random(dataset).items))
    report.write(tmp_path / "report.json")
    plain = json.loads((tmp_path / "report.json").read_text())
    assert plain["metrics"]["recall_at_5"] == report.metrics["recall_at_5"].value
    low, high = plain["intervals"]["recall_at_5"]
    assert low <= plain["metrics"]["recall_at_5"] <= high
    assert set(plain["difference_to_popularity"]["intervals"]) >= {"recall_at_5", "ndcg_at_1"}
    assert plain["about"]["split"]["rule"] == "given"
    flat = report.flat_metrics()
    for name in ("recall_at_5", "index_recall_at_5", "through_index_recall_at_5"):
        assert math.isfinite(flat[name])
    assert all(name.replace("_", "").isalnum() for name in flat)
    report.write_per_user(tmp_path / "per_user.csv")
    report.write_per_user(tmp_path / "per_user.parquet")
    assert (tmp_path / "per_user.csv").read_text().startswith('"user_id","num_relevant"')
    with pytest.raises(DataError, match=r"must end in .parquet or .csv"):
        report.write_per_user(tmp_path / "per_user.txt")


def test_the_same_seed_gives_the_same_report(tmp_path: Path) -> None:
    dataset = make_random_dataset(tmp_path)
    assert evaluate(dataset).to_json() == evaluate(dataset).to_json()


def test_refusals(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path, train=[("u", "a", 1), ("v", "b", 1)], test=[("u", "b", 2)])
    with pytest.raises(DataError, match=r"The validation part of .* is empty"):
        evaluate(dataset, "validation")
    with pytest.raises(ArgumentError, match="`part` must be one of validation, test"):
        evaluate(dataset, "train")
    with pytest.raises(ArgumentError, match="`ks` must hold numbers of at least 1"):
        evaluate(dataset, ks=[])
    with pytest.raises(DataError, match="The index holds 5 items"):
        evaluate(dataset, exact=ExactIndex(make_vectors(5, 0)))
