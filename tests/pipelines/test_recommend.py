"""The stage `recommend`: lists that an outside evaluator scores as the report does."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from recsys.bundle import read_bundle
from recsys.data import read_prepared
from recsys.evaluation import build_queries, embed_queries
from recsys.foundations import ArgumentError, DataError, MissingFileError


@pytest.mark.parametrize("exact", [True, False])
def test_an_outside_evaluator_finds_the_reports_recall(
    trained: Any, exact: bool, tmp_path: Path, recommend_to: Any, events_of: Any, dataset_of: Any
) -> None:
    lists = recommend_to(tmp_path / "top.parquet", trained.bundle, k=10, exact=exact)
    truth = events_of(dataset_of(trained.bundle), "test").groupby("user_id")["item_id"].agg(set)
    given = lists.groupby("user_id")["item_id"].agg(set)
    recalls = [len(relevant & given[user]) / len(relevant) for user, relevant in truth.items()]
    report = json.loads((trained.folder / "report.json").read_text())
    assert np.mean(recalls) == pytest.approx(report["metrics"]["recall_at_10"], abs=1e-12)


HISTORY = "model.user_tower.history"


@pytest.mark.parametrize(
    "history",
    [
        {f"{HISTORY}.encoder": "transformer", f"{HISTORY}.time_gaps": True},
        {f"{HISTORY}.encoder": "attention", f"{HISTORY}.num_interests": 3},
    ],
    ids=lambda history: str(history[f"{HISTORY}.encoder"]),
)
def test_lists_are_those_that_evaluate_ranks_whatever_reads_the_history(
    history: dict[str, Any], train_in: Any, tmp_path: Path, recommend_to: Any, dataset_of: Any
) -> None:
    folder = tmp_path / "run"
    path = train_in(folder, history | {"trainer.epochs": 1})
    bundle, dataset = read_bundle(path), read_prepared(dataset_of(path))
    queries = build_queries(dataset, "test")
    assert len(queries) > 50
    vectors = embed_queries(bundle.model, queries)
    hits = bundle.exact.search(vectors, 10, exclude=queries.seen)
    users = dataset.users.vocabulary.ids_of(queries.user_rows).to_pylist()
    given = recommend_to(tmp_path / "top.parquet", path, k=10)
    lists = dict(iter(given.groupby("user_id")))
    found = []
    for place, (user, (rows, scores)) in enumerate(zip(users, hits, strict=True)):
        truth = queries.truth[place]
        ids = dataset.items.vocabulary.ids_of(rows).to_pylist()
        assert lists[user]["item_id"].tolist() == ids
        assert lists[user]["score"].tolist() == scores.tolist()
        found.append(len(np.intersect1d(rows, truth)) / len(truth))
    report = json.loads((folder / "report.json").read_text())
    assert np.mean(found) == pytest.approx(report["metrics"]["recall_at_10"], abs=1e-12)


@pytest.mark.parametrize("alpha", [0.25, 1.0])
def test_an_outside_evaluator_finds_what_the_report_says_of_the_popularity_dial(
    trained: Any, alpha: float, tmp_path: Path, recommend_to: Any, events_of: Any, dataset_of: Any
) -> None:
    lists = recommend_to(tmp_path / "top.parquet", trained.bundle, k=10, popularity_alpha=alpha)
    truth = events_of(dataset_of(trained.bundle), "test").groupby("user_id")["item_id"].agg(set)
    lists = lists[lists["user_id"].isin(truth.index)]
    given = lists.groupby("user_id")["item_id"].agg(set)
    recalls = [len(relevant & given[user]) / len(relevant) for user, relevant in truth.items()]
    report = json.loads((trained.folder / "report.json").read_text())
    points = {point["alpha"]: point["metrics"] for point in report["popularity_dial"]}
    assert list(points) == [0.0, 0.25, 0.5, 1.0]
    assert np.mean(recalls) == pytest.approx(points[alpha]["recall_at_10"], abs=1e-12)
    shown = lists["item_id"].nunique() / report["counts"]["num_items"]
    assert shown == pytest.approx(points[alpha]["coverage_at_10"], abs=1e-12)
    assert points[alpha]["mean_popularity_at_10"] < points[0.0]["mean_popularity_at_10"]


def test_the_lists_have_the_columns_that_are_promised(
    trained: Any, tmp_path: Path, recommend_to: Any
) -> None:
    lists = recommend_to(tmp_path / "top.parquet", trained.bundle, k=7)
    schema = pq.read_schema(tmp_path / "top.parquet")
    kinds = {name: str(schema.field(name).type) for name in schema.names}
    assert kinds == {
        "user_id": "string",
        "item_id": "string",
        "rank": "int32",
        "score": "float",
        "fallback": "bool",
    }
    assert not lists["fallback"].any()
    for _, one in lists.groupby("user_id"):
        assert one["rank"].tolist() == [1, 2, 3, 4, 5, 6, 7]
        assert one["score"].is_monotonic_decreasing
        assert one["item_id"].is_unique


@pytest.mark.parametrize("exact", [True, False])
def test_only_items_for_which_an_expression_holds_are_given(
    trained: Any, exact: bool, tmp_path: Path, recommend_to: Any
) -> None:
    items = read_bundle(trained.bundle).items
    assert items.display is not None
    ids, price, tag = (
        column.to_pylist()
        for column in (items.vocabulary.ids, items.display["price"], items.display["tags"])
    )
    prices, tags = dict(zip(ids, price, strict=True)), dict(zip(ids, tag, strict=True))
    where = "price <= 20 and not tags contains tag3"
    passing = {one for one in prices if prices[one] is not None and prices[one] <= 20}
    passing = {one for one in passing if "tag3" not in (tags[one] or [])}
    assert 20 < len(passing) < 60  # of 80
    whole = recommend_to(tmp_path / "all.parquet", trained.bundle, k=80, exact=exact)
    expected = whole[whole["item_id"].isin(passing)].groupby("user_id").head(5)
    found = recommend_to(tmp_path / "some.parquet", trained.bundle, k=5, exact=exact, where=where)
    columns = ["user_id", "item_id", "score"]
    assert found[columns].values.tolist() == expected[columns].values.tolist()
    with pytest.raises(ArgumentError, match="position 1: there is no column 'cost'"):
        recommend_to(tmp_path / "none.parquet", trained.bundle, where="cost < 3")
    assert not (tmp_path / "none.parquet").exists()


def test_what_a_user_had_is_left_out_unless_asked_for(
    trained: Any, tmp_path: Path, recommend_to: Any, events_of: Any, dataset_of: Any
) -> None:
    dataset = dataset_of(trained.bundle)
    seen = pd.concat([events_of(dataset, "train"), events_of(dataset, "validation")])
    columns = ["user_id", "item_id"]
    pairs = set(seen[columns].itertuples(index=False, name=None))
    lists = recommend_to(tmp_path / "a.parquet", trained.bundle, k=30)
    assert not pairs & set(lists[columns].itertuples(index=False, name=None))
    lists = recommend_to(tmp_path / "b.parquet", trained.bundle, k=30, exclude_seen=False)
    assert pairs & set(lists[columns].itertuples(index=False, name=None))


def test_some_users_one_of_them_unknown(
    trained: Any, tmp_path: Path, recommend_to: Any, events_of: Any, dataset_of: Any
) -> None:
    known = events_of(dataset_of(trained.bundle), "train")["user_id"].iloc[0]
    (tmp_path / "users.csv").write_text(f"user_id\n{known}\nstranger\n")
    lists = recommend_to(
        tmp_path / "top.parquet", trained.bundle, k=3, users=str(tmp_path / "users.csv")
    )
    assert lists["user_id"].tolist() == [known] * 3 + ["stranger"] * 3
    assert lists["fallback"].tolist() == [False] * 3 + [True] * 3
    counts = events_of(dataset_of(trained.bundle), "train")["item_id"].value_counts()
    assert lists["score"].iloc[3] == counts.iloc[0]


def test_given_histories_stand_in_place_of_the_stored_ones(
    trained: Any, tmp_path: Path, recommend_to: Any, events_of: Any, dataset_of: Any
) -> None:
    dataset = dataset_of(trained.bundle)
    events = events_of(dataset, "train")
    history = events[events["user_id"] == events["user_id"].iloc[0]].assign(user_id="newcomer")
    history["timestamp"] //= 1_000_000
    history.to_csv(tmp_path / "h.csv", index=False)
    lists = recommend_to(
        tmp_path / "top.parquet", trained.bundle, k=5, histories=str(tmp_path / "h.csv")
    )
    assert set(lists["user_id"]) == {"newcomer"}  # all means the users of the histories
    assert not set(history["item_id"]) & set(lists["item_id"])
    assert not lists["fallback"].any()


def test_columns_that_the_model_does_not_know_are_named_in_one_warning(
    trained: Any, tmp_path: Path, recommend_to: Any, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "users.csv").write_text("user_id,colour,segment,sise\nu1,red,1,9\nu2,blue,2,8\n")
    recommend_to(tmp_path / "top.parquet", trained.bundle, users=str(tmp_path / "users.csv"))
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == ["columns of the users file that the model does not read: colour, sise"]


def test_columns_of_the_users_file_stand_in_place_of_stored_features_and_others_are_not_read(
    trained: Any, tmp_path: Path, recommend_to: Any, events_of: Any, dataset_of: Any
) -> None:
    # The made-up users have one feature, `segment`.
    users = events_of(dataset_of(trained.bundle), "train")["user_id"].unique()[:2]
    lists = {}
    for name, columns in {
        "none": {},
        "other": {"mood": ["fine", "fine"]},
        "segment": {"segment": ["no such", "no such"]},
    }.items():
        file = tmp_path / f"{name}.csv"
        pd.DataFrame({"user_id": users} | columns).to_csv(file, index=False)
        output = tmp_path / f"{name}.parquet"
        lists[name] = recommend_to(output, trained.bundle, k=5, users=str(file))
    pd.testing.assert_frame_equal(lists["none"], lists["other"])
    assert not lists["none"]["score"].equals(lists["segment"]["score"])


def test_the_id_column_of_the_users_file_can_have_another_name(
    trained: Any, tmp_path: Path, recommend_to: Any
) -> None:
    (tmp_path / "users.csv").write_text("who\nstranger\n")
    settings = {"users": str(tmp_path / "users.csv"), "columns.user_table_id": "who"}
    lists = recommend_to(tmp_path / "top.parquet", trained.bundle, k=2, **settings)
    assert lists["user_id"].tolist() == ["stranger"] * 2


def test_a_refused_request_writes_nothing(trained: Any, tmp_path: Path, recommend_to: Any) -> None:
    with pytest.raises(
        MissingFileError, match=rf"users must be all or a file of user ids; {tmp_path}/nowhere\.csv"
    ):
        recommend_to(tmp_path / "top.parquet", trained.bundle, users=str(tmp_path / "nowhere.csv"))
    (tmp_path / "users.csv").write_text("name\nx\n")
    with pytest.raises(DataError, match="user_id"):
        recommend_to(tmp_path / "top.parquet", trained.bundle, users=str(tmp_path / "users.csv"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["users.csv"]


def test_a_bundle_that_is_not_there_is_named(tmp_path: Path, recommend_to: Any) -> None:
    with pytest.raises(MissingFileError, match=rf"{tmp_path}/none/manifest\.json does not exist"):
        recommend_to(tmp_path / "top.parquet", tmp_path / "none")
