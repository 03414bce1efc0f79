"""Rankers beside one another: the same numbers as a model's report, and nothing twice."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from recsys.data import (
    FilterSettings,
    PreparedDataset,
    RawLog,
    SplitSettings,
    prepare_dataset,
    read_prepared,
)
from recsys.evaluation import (
    Comparison,
    EvaluationQueries,
    FilledRank,
    PopularityList,
    PopularityRanker,
    RankedCandidates,
    Resampling,
    build_queries,
    compare_rankers,
    comparison_table,
    evaluate_retrieval,
    mean_recall,
    print_comparison,
    rank_by_vectors,
)
from recsys.foundations import DataError, Ragged
from recsys.index import ExactIndex

RESAMPLING = Resampling(seed=3, num=50)
ALL = RankedCandidates("all", None, 0)
NOBODY: EvaluationQueries = None  # type: ignore[assignment]  # of a ranking that asks nothing


def make_dataset(folder: Path) -> PreparedDataset:
    rng = np.random.default_rng(0)
    users, items = rng.integers(0, 40, 600), (50 * rng.random(600) ** 2).astype(int)
    table = pa.table(
        {
            "user_id": pa.array([f"u{u}" for u in users], pa.large_string()),
            "item_id": pa.array([f"i{i}" for i in items], pa.large_string()),
            "timestamp": pa.array(np.arange(600), pa.int64()),
        }
    )
    path = prepare_dataset(
        RawLog(table, "time", {}, 600, []),
        items=None,
        users=None,
        output=folder / "prepared",
        filters=FilterSettings(),
        split=SplitSettings(rule="leave_last_out"),
        seed=0,
        exclude_seen=True,
    )
    return read_prepared(path)


def make_ragged(lists: list[list[int]]) -> Ragged:
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return Ragged(offsets, np.array([row for one in lists for row in one], np.int64))


class FixedScores:
    """The same scores for everyone, through exact search."""

    def __init__(self, scores: np.ndarray) -> None:
        self.index = ExactIndex(scores.astype(np.float32)[:, None])

    def top(
        self, histories: Ragged, k: int, exclude: Ragged, allowed: np.ndarray | None = None
    ) -> Ragged:
        queries = np.ones((len(histories), 1), np.float32)
        return self.index.search(queries, k, exclude=exclude, allowed=allowed).lists


class Nothing:
    """Ranks nothing."""

    def top(
        self, histories: Ragged, k: int, exclude: Ragged, allowed: np.ndarray | None = None
    ) -> Ragged:
        return Ragged.empty(len(histories))


def compare(dataset: PreparedDataset, **rankers: FixedScores | Nothing) -> Comparison:
    return compare_rankers(
        dataset,
        "test",
        rankers,
        ks=[3, 10],
        resampling=RESAMPLING,
        details={"fixed": {"settings": {"lambda": 2.0}}},
        skipped={"ease": "too large"},
    )


def test_gives_the_numbers_of_a_models_report(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path)
    scores = np.random.default_rng(1).random(dataset.num_items)
    fixed = FixedScores(scores)
    comparison = compare(dataset, fixed=fixed)

    def embed(block: EvaluationQueries) -> np.ndarray:
        return np.ones((len(block), 1), np.float32)

    report = evaluate_retrieval(
        dataset,
        "test",
        embed=embed,
        exact=fixed.index,
        approximate=None,
        ks=[3, 10],
        seed=RESAMPLING.seed,
        num_resamples=RESAMPLING.num,
        level=RESAMPLING.level,
    )
    assert comparison.systems["fixed"].metrics == report.metrics
    assert comparison.systems["fixed"].difference == report.difference
    assert comparison.systems["popularity"].metrics == report.popularity
    assert comparison.counts == report.counts
    assert comparison.about == report.about
    column = comparison.per_user["fixed_ndcg_at_3"].to_pylist()
    assert column == report.per_user["ndcg_at_3"].to_pylist()


def test_lists_that_end_early_go_on_with_popular_items(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path)
    comparison = compare(dataset, nothing=Nothing())
    nothing, popularity = comparison.systems["nothing"], comparison.systems["popularity"]
    assert nothing.metrics == popularity.metrics
    assert {one.value for one in nothing.difference.values()} == {0.0}
    assert nothing.num_filled_users == comparison.counts["num_users"]
    assert popularity.num_filled_users == 0


@given(data=st.data(), k=st.integers(1, 9))
def test_filling_equals_a_walk(data: st.DataObject, k: int) -> None:
    row = st.integers(0, 6)
    counts = np.array(data.draw(st.lists(st.integers(0, 4), min_size=7, max_size=7)))
    banned = data.draw(st.lists(st.lists(row, unique=True), min_size=2, max_size=2))
    given_rows = [data.draw(st.permutations([r for r in range(7) if r not in b])) for b in banned]
    lists = [rows[: data.draw(st.integers(0, k))] for rows in given_rows]

    def rank(queries: EvaluationQueries, k: int, exclude: Ragged) -> Ragged:
        return make_ragged(lists)

    allowed = np.array(sorted(data.draw(st.sets(row))), np.int64)
    lists = [[item for item in one if item in allowed] for one in lists]
    filled = FilledRank(rank, PopularityList(counts, allowed))(NOBODY, k, make_ragged(banned))
    walk = sorted(allowed.tolist(), key=lambda item: (-counts[item], item))
    for query, start in enumerate(lists):
        rest = [item for item in walk if item not in banned[query] and item not in start]
        assert filled[query].tolist() == [*start, *rest][:k]


def test_writes_numbers_and_values_per_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = make_dataset(tmp_path)
    comparison = compare(dataset, fixed=FixedScores(np.arange(dataset.num_items)))
    files = comparison.write(tmp_path / "run" / "baselines.json")
    written = json.loads(files[0].read_text())
    assert list(written["systems"]) == ["fixed", "popularity"]
    fixed = written["systems"]["fixed"]
    assert fixed["settings"] == {"lambda": 2.0}
    assert fixed["metrics"]["recall_at_10"] == comparison.flat_metrics()["fixed_recall_at_10"]
    assert set(fixed["difference_to_popularity"]["intervals"]) >= {"recall_at_3", "map_at_10"}
    assert written["skipped"] == {"ease": "too large"}
    per_user = pq.read_table(files[1])
    mean = np.mean(per_user["fixed_recall_at_10"].to_numpy())
    assert mean == pytest.approx(fixed["metrics"]["recall_at_10"], abs=1e-12)

    print_comparison(comparison)
    shown = capsys.readouterr().out
    assert "ease is skipped: too large." in shown
    assert "lambda 2" in shown
    assert f"{fixed['metrics']['recall_at_10']:.4f} [" in shown
    Console(width=80).print(comparison_table(comparison))


def test_mean_recall_is_that_of_the_comparison(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path)
    ranker = PopularityRanker(dataset.items.counts[: dataset.num_items])
    queries = build_queries(dataset, "test")
    found = mean_recall(queries, ranker, 10, exclude_seen=True, ranked=ALL)
    expected = compare(dataset).systems["popularity"].metrics["recall_at_10"].value
    assert found == pytest.approx(expected, abs=1e-12)


def test_refuses_an_empty_part(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path)
    with pytest.raises(DataError, match=r"validation part of .* is empty"):
        compare_rankers(
            dataset_without_validation(tmp_path, dataset),
            "validation",
            {},
            ks=[1],
            resampling=RESAMPLING,
            details={},
            skipped={},
        )


def dataset_without_validation(folder: Path, dataset: PreparedDataset) -> PreparedDataset:
    nobody = dataset.validation.take(np.zeros(0, np.int64))
    return PreparedDataset(**{**vars(dataset), "validation": nobody})


@pytest.mark.parametrize(
    ("ks", "headings"),
    [
        (
            [1, 5, 10, 20, 50, 100],
            ["recall@10", "difference", "recall@20", "recall@100", "NDCG@10", "NDCG@100"],
        ),
        ([20, 50], ["recall@50", "difference", "recall@20", "NDCG@50"]),
        ([10, 200], ["recall@10", "difference", "recall@200", "NDCG@10"]),
        ([5], ["recall@5", "difference", "NDCG@5"]),
    ],
)
def test_the_table_shows_the_lengths_that_are_often_quoted_of_those_asked_for(
    tmp_path: Path, ks: list[int], headings: list[str]
) -> None:
    dataset = make_dataset(tmp_path)
    comparison = compare_rankers(
        dataset, "test", {}, ks=ks, resampling=RESAMPLING, details={}, skipped={}
    )
    table = comparison_table(comparison)
    main = headings[0].removeprefix("recall")
    shown = [str(column.header) for column in table.columns]
    assert shown == ["system", "settings", *headings, f"MRR{main}", f"coverage{main}"]
    assert all(len(list(column.cells)) == 1 for column in table.columns)
    assert list(table.columns[4].cells) != [""]


def test_a_model_that_reads_nothing_of_anybody_gives_popular_items_in_either_report(
    tmp_path: Path,
) -> None:
    dataset = make_dataset(tmp_path)
    index = ExactIndex(np.arange(dataset.num_items, dtype=np.float32)[::-1, None].copy())

    def embed(block: EvaluationQueries) -> np.ndarray:
        return np.ones((len(block), 1), np.float32)

    def reads(queries: EvaluationQueries) -> np.ndarray:
        return np.zeros(len(queries), bool)

    comparison = compare_rankers(
        dataset,
        "test",
        {},
        ks=[3, 10],
        resampling=RESAMPLING,
        details={},
        skipped={},
        model=partial(rank_by_vectors, embed, index),
        reads=reads,
    )
    report = evaluate_retrieval(
        dataset,
        "test",
        embed=embed,
        exact=index,
        approximate=None,
        ks=[3, 10],
        seed=RESAMPLING.seed,
        num_resamples=RESAMPLING.num,
        level=RESAMPLING.level,
        reads=reads,
    )
    model, everybody = comparison.systems["model"], comparison.counts["num_users"]
    assert model.metrics == comparison.systems["popularity"].metrics == report.metrics
    assert comparison.counts["num_fallback_users"] == model.num_filled_users == everybody
    assert report.counts["num_fallback_users"] == everybody > 0
