"""The stages `neighbours` and `index`, against plain products of the stored vectors."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipelines.index import index
from pipelines.neighbours import neighbours
from recsys.bundle import read_bundle
from recsys.config import (
    NeighboursConfig,
    ReindexConfig,
    compose_config,
)
from recsys.foundations import FormatError, MissingExtraError, UnknownIdError


def test_neighbours_go_to_a_file_or_the_terminal(
    trained: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"bundle": str(trained.bundle), "k": 3, "threads": 1}
    output = {"output": str(tmp_path / "near.parquet")}
    neighbours(compose_config("neighbours", NeighboursConfig, given | output))
    near = pd.read_parquet(tmp_path / "near.parquet")
    bundle = read_bundle(trained.bundle)
    assert len(near) == 3 * bundle.num_items
    assert (near["query_item_id"] != near["item_id"]).all()

    item = near["query_item_id"].iloc[0]
    neighbours(compose_config("neighbours", NeighboursConfig, given | {"items": item}))
    shown = capsys.readouterr().out
    for other in near[near["query_item_id"] == item]["item_id"]:
        assert other in shown


def test_the_nearest_item_is_that_of_a_plain_product(trained: Any, tmp_path: Path) -> None:
    given = {"bundle": str(trained.bundle), "k": 4, "threads": 1, "exact": True}
    given |= {"output": str(tmp_path / "near.parquet")}
    neighbours(compose_config("neighbours", NeighboursConfig, given))
    near = pd.read_parquet(tmp_path / "near.parquet")
    bundle = read_bundle(trained.bundle)
    vectors = np.asarray(bundle.item_vectors, np.float64)
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -np.inf)
    ids = bundle.items.vocabulary.ids.to_pylist()
    for row in range(0, bundle.num_items, 9):
        best = np.argsort(-scores[row], kind="stable")[:4]
        got = near[near["query_item_id"] == ids[row]]["item_id"].tolist()
        assert got == [ids[place] for place in best]


def test_items_of_a_file(trained: Any, tmp_path: Path) -> None:
    ids = read_bundle(trained.bundle).items.vocabulary.ids.to_pylist()[5:8]
    (tmp_path / "items.tsv").write_text("\n".join(["sku\tnote", *(f"{one}\tx" for one in ids)]))
    given = {"bundle": str(trained.bundle), "k": 2, "threads": 1, "columns.item": "sku"}
    given |= {"items": str(tmp_path / "items.tsv"), "output": str(tmp_path / "near.parquet")}
    neighbours(compose_config("neighbours", NeighboursConfig, given))
    near = pd.read_parquet(tmp_path / "near.parquet")
    assert near["query_item_id"].tolist() == [one for one in ids for _ in range(2)]


def test_an_unknown_item_is_named(trained: Any) -> None:
    given = {"bundle": str(trained.bundle), "items": "no such item"}
    with pytest.raises(UnknownIdError, match="no such item"):
        neighbours(compose_config("neighbours", NeighboursConfig, given))


def test_another_index_is_a_new_bundle_with_the_same_vectors(
    trained: Any, tmp_path: Path, recommend_to: Any, run_evaluate: Any
) -> None:
    given = {"bundle": str(trained.bundle), "index": "hnsw", "threads": 1}
    path = index(compose_config("index", ReindexConfig, given), tmp_path / "run")
    assert path == tmp_path / "run" / "bundle"
    old, new = read_bundle(trained.bundle), read_bundle(path)
    assert np.array_equal(old.item_vectors, new.item_vectors)
    assert old.bundle_id != new.bundle_id
    assert (old.index.kind, new.index.kind) == ("flat", "hnsw")
    exact = recommend_to(tmp_path / "a.parquet", trained.bundle, k=5)
    approximate = recommend_to(tmp_path / "b.parquet", path, k=5)
    both = exact.merge(approximate, on=["user_id", "item_id"])
    assert len(both) > 0.99 * len(exact)
    assert (both["score_x"] == both["score_y"]).all()
    report = run_evaluate(tmp_path / "report", bundle=str(path), k=[5])
    assert report["through_index"]["metrics"]["index_recall_at_5"] > 0.99


def test_a_scann_index_is_built_named_and_looked_up_in(
    trained: Any, tmp_path: Path, recommend_to: Any, run_evaluate: Any
) -> None:
    pytest.importorskip("scann")
    given = {"bundle": str(trained.bundle), "index": "scann", "threads": 1}
    given |= {"index.num_lists": 4, "index.num_probes": 4, "index.overfetch": 80}
    path = index(compose_config("index", ReindexConfig, given), tmp_path / "run")
    bundle = read_bundle(path)
    assert bundle.index.kind == bundle.config["index"]["kind"] == "scann"
    assert "index.scann/scann_config.pb" in bundle.manifest["files"]
    assert "index.faiss" not in bundle.manifest["files"]
    assert "scann-core" in bundle.manifest["provenance"]["versions"]
    exact = recommend_to(tmp_path / "a.parquet", trained.bundle, k=5)
    assert recommend_to(tmp_path / "b.parquet", path, k=5).equals(exact)
    report = run_evaluate(tmp_path / "report", bundle=str(path), k=[5])
    assert report["through_index"]["metrics"]["index_recall_at_5"] == 1
    given = {"bundle": str(path), "index": "flat", "threads": 1}
    again = read_bundle(index(compose_config("index", ReindexConfig, given), tmp_path / "flat"))
    assert again.index.kind == "flat"
    assert not (again.path / "index.scann").exists()


def test_a_damaged_or_lacking_file_of_a_scann_index_is_refused_by_name(
    trained: Any, tmp_path: Path
) -> None:
    pytest.importorskip("scann")
    given = {"bundle": str(trained.bundle), "index": "scann", "threads": 1}
    path = index(compose_config("index", ReindexConfig, given), tmp_path / "run")
    codes = path / "index.scann" / "hashed_dataset.npy"
    whole = codes.read_bytes()
    codes.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(FormatError, match=r"hashed_dataset\.npy is damaged: its SHA-256"):
        read_bundle(path)
    assert read_bundle(path, verify=False).index.kind == "scann"  # any code is a code
    codes.unlink()
    with pytest.raises(FormatError, match=r"hashed_dataset\.npy is missing"):
        read_bundle(path, verify=False)


def test_index_scann_without_its_package_is_refused_before_any_data_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "scann", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'recsys-retrieval\[scann\]'"):
        compose_config("index", ReindexConfig, {"bundle": "nowhere", "index": "scann"})


def test_a_tuned_index_says_in_the_run_and_the_manifest_how_it_was_chosen(
    trained: Any, tmp_path: Path
) -> None:
    given = {"bundle": str(trained.bundle), "index": "auto", "threads": 1, "index.m": 4}
    given |= {"index.exact_below": 0, "index.target_k": 5, "index.target_recall": 0.8}
    path = index(compose_config("index", ReindexConfig, given), tmp_path / "run")
    found = json.loads((tmp_path / "run" / "index_tuning.json").read_text())
    outcomes = {trial["kind"]: trial["outcome"] for trial in found["trials"]}
    assert outcomes["hnsw"] in ("chosen", "slower")
    assert outcomes["ivf_pq_fast"] == "not tried"  # 80 items cannot train it
    assert found["num_queries"] >= 10
    bundle = read_bundle(path)
    noted = bundle.manifest["provenance"]["index_tuning"]
    assert noted["chosen"]["kind"] == bundle.index.kind == bundle.config["index"]["kind"]
    assert noted["target"]["target_recall"] == 0.8
    other = {"bundle": str(path), "index": "flat", "threads": 1}
    again = index(compose_config("index", ReindexConfig, other), tmp_path / "flat")
    assert "index_tuning" not in read_bundle(again).manifest["provenance"]


def test_a_training_of_few_items_takes_exact_search_unmeasured(trained: Any) -> None:
    found = json.loads((trained.folder / "index_tuning.json").read_text())
    assert found["trials"] == []
    assert found["settings"]["kind"] == "flat"
    assert read_bundle(trained.bundle).index.kind == "flat"
