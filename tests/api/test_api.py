"""The Python names: train, evaluate, load_bundle, with tables in and out."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import recsys
from recsys import RecsysError, TrainedRun
from recsys.foundations import (
    ArgumentError,
    ConfigError,
    FormatError,
    MissingFileError,
    read_json,
)

SETTINGS = {
    "dataset": "synthetic",
    "dataset.num_users": 60,
    "dataset.num_items": 50,
    "dataset.num_interactions": 900,
    "model.embedding_dim": 8,
    "loss.num_sampled": 16,
    "trainer.epochs": 2,
    "evaluation.num_bootstrap": 20,
    "tracking": "none",
    "threads": 1,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> TrainedRun:
    root = tmp_path_factory.mktemp("api")
    paths = {"run_dir": str(root / "run"), "dataset.prepared_root": str(root / "prepared")}
    return recsys.train(SETTINGS | paths)


def test_a_run_gives_its_folder_its_bundle_and_its_report(run: TrainedRun) -> None:
    assert run.bundle == run.run_dir / "bundle"
    assert run.report is not None
    assert 0 < run.report["metrics"]["recall_at_10"] <= 1


def test_two_runs_without_a_folder_get_one_each(
    run: TrainedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = SETTINGS | {"trainer.epochs": 1, "dataset.num_interactions": 300}
    folders = [
        recsys.train(settings | chosen).run_dir
        for chosen in ({}, {"experiment": ["history", "estimator/uniform"]})
    ]
    assert len(set(folders)) == 2
    assert all(folder.parent == tmp_path / "outputs" / "train" for folder in folders)
    records = [read_json(folder / "run.json")["settings"] for folder in folders]
    assert [record["loss"] for record in records] == ["mixed", "sampled_softmax"]


def test_recommendations_are_arrow_tables_for_ids_of_any_kind_of_list(run: TrainedRun) -> None:
    lookup = recsys.load_bundle(run.bundle)
    everybody = lookup.recommend(k=5)
    assert isinstance(everybody, pa.Table)
    frame = everybody.to_pandas()
    users = frame["user_id"].unique()
    few = users[[3, 1, 7]]
    expected = pd.concat([frame[frame["user_id"] == user] for user in few], ignore_index=True)
    for given in (few.tolist(), np.array(few, object), pd.Series(few), pa.array(few.tolist())):
        got = lookup.recommend(given, k=5).to_pandas()
        pd.testing.assert_frame_equal(got, expected)


def test_histories_of_strangers_are_pandas_or_arrow(run: TrainedRun) -> None:
    lookup = recsys.load_bundle(str(run.bundle))
    items = lookup.recommend(k=3).to_pandas()["item_id"].head(3)
    histories = pd.DataFrame({"user_id": "new", "item_id": items, "timestamp": [1, 2, 3]})
    first = lookup.recommend(k=4, histories=histories)
    assert first["user_id"].unique().to_pylist() == ["new"]
    assert first["fallback"].to_pylist() == [False] * 4
    assert not set(first["item_id"].to_pylist()) & set(items)
    table = pa.Table.from_pandas(histories, preserve_index=False)
    assert lookup.recommend(k=4, histories=table).equals(first)


def test_scores_are_inner_products_of_the_vectors(run: TrainedRun) -> None:
    lookup = recsys.load_bundle(run.bundle)
    users, items = lookup.embed_users().to_pandas(), lookup.embed_items().to_pandas()
    products = np.stack(users["vector"]) @ np.stack(items["vector"]).T
    scores = pd.DataFrame(products, users["user_id"], items["item_id"])
    for row in lookup.recommend(k=3).to_pandas().itertuples():
        assert row.score == pytest.approx(scores.loc[row.user_id, row.item_id], abs=1e-5)


def test_neighbours_of_an_item(run: TrainedRun) -> None:
    lookup = recsys.load_bundle(run.bundle)
    item = lookup.embed_items()["item_id"][0].as_py()
    near = lookup.neighbours([item], k=4)
    assert near["query_item_id"].to_pylist() == [item] * 4
    assert item not in near["item_id"].to_pylist()


def test_evaluate_gives_the_reports_numbers_and_writes_nothing(run: TrainedRun) -> None:
    before = sorted(run.run_dir.rglob("*"))
    settings = {"evaluation.num_bootstrap": 20, "threads": 1}
    report = recsys.evaluate(run.bundle, k=[1, 10], settings=settings)
    assert run.report is not None
    for name in ("recall_at_10", "ndcg_at_1", "coverage_at_10"):
        assert report.flat_metrics()[name] == run.report["metrics"][name]
    assert sorted(run.run_dir.rglob("*")) == before


def test_evaluate_takes_lists_and_truth(run: TrainedRun) -> None:
    # Of u's two relevant items the first place holds one, the second none: recall 1/2 and 1/2.
    ranked = pd.DataFrame({"user_id": ["u", "u"], "item_id": ["a", "x"], "rank": [1, 2]})
    truth = pd.DataFrame({"user_id": ["u", "u"], "item_id": ["a", "b"]})
    flat = recsys.evaluate(ranked=ranked, truth=truth, k=[1, 2]).flat_metrics()
    assert (flat["recall_at_1"], flat["recall_at_2"]) == (0.5, 0.5)
    tables = [pa.Table.from_pandas(frame) for frame in (ranked, truth)]
    again = recsys.evaluate(ranked=tables[0], truth=tables[1], k=[1, 2]).flat_metrics()
    assert again == flat


def test_evaluate_wants_a_bundle_or_both_tables() -> None:
    table = pd.DataFrame({"user_id": ["u"], "item_id": ["a"], "rank": [1]})
    for given in ({}, {"ranked": table}, {"bundle": "b", "truth": table}):
        with pytest.raises(ArgumentError, match="must get `bundle`, or `ranked` and `truth`"):
            recsys.evaluate(**given)
    with pytest.raises(ArgumentError, match="`settings` must come with `bundle`"):
        recsys.evaluate(ranked=table, truth=table, settings={"evaluation.num_bootstrap": 20})


def test_refusals_are_our_errors() -> None:
    with pytest.raises(ConfigError, match=r"trainer\.epoch is not a setting; did you mean"):
        recsys.train({"dataset": "synthetic", "trainer.epoch": 3})
    with pytest.raises(RecsysError, match="loss=softmax is not a choice"):
        recsys.train({"loss": "softmax"})


def test_a_bundle_that_is_missing_or_damaged_is_named(run: TrainedRun, tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"nowhere/manifest\.json does not exist"):
        recsys.load_bundle(tmp_path / "nowhere")
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in run.bundle.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    content = bytearray((copy / "item_vectors.npy").read_bytes())
    content[-1] ^= 1
    (copy / "item_vectors.npy").write_bytes(content)
    with pytest.raises(FormatError, match=r"copy/item_vectors\.npy is damaged"):
        recsys.load_bundle(copy)
    assert recsys.load_bundle(copy, verify=False).recommend(k=1).num_rows == 60


def test_the_names_are_listed_and_load_nothing_until_asked_for(tmp_path: Path) -> None:
    code = """
import sys, recsys
assert set(recsys.__all__) <= set(dir(recsys))
heavy = {"torch", "pandas", "pyarrow", "numpy", "mlflow", "hydra", "faiss"} & set(sys.modules)
print(sorted(heavy))
recsys.train
print("torch" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split("\n")[:2] == ["[]", "True"]


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'recsys' has no attribute 'tran'"):
        recsys.tran  # noqa: B018
