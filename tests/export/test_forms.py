"""Every form read back by other readers: the same ids, vectors and neighbours as in the bundle."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from recsys.bundle import Bundle
from recsys.models import UserTowerSpec
from recsys.serving import Lookup

MakeBundle = Callable[..., Bundle]
Export = Callable[..., Path]
MANY = [f"i{n}" for n in range(60)]
SPECS: dict[str, dict[str, Any]] = {
    "plain": {},
    "bias": {"item_bias": True},
    "interests": {
        "item_bias": True,
        "user_tower": UserTowerSpec(history="attention", num_interests=3, use_id=False),
    },
}


def read_parquet(folder: Path) -> dict[str, list[float]]:
    table = pd.read_parquet(folder / "parquet" / "items.parquet")
    return dict(zip(table["item_id"], table["vector"], strict=True))


def read_qdrant(folder: Path) -> dict[str, list[float]]:
    settings = json.loads((folder / "qdrant" / "collection.json").read_text())
    assert settings["vectors"]["distance"] == "Dot"
    found = {}
    for file in sorted((folder / "qdrant").glob("points-*.json")):
        for point in json.loads(file.read_text())["points"]:
            assert len(point["vector"]) == settings["vectors"]["size"]
            found[point["payload"]["item_id"]] = point["vector"]
    return found


def read_milvus(folder: Path) -> dict[str, list[float]]:
    found = {}
    for file in sorted((folder / "milvus").glob("items-*.parquet")):
        for row in pq.read_table(file).to_pylist():
            found[row["item_id"]] = row["vector"]
    return found


def read_opensearch(folder: Path) -> dict[str, list[float]]:
    found = {}
    for file in sorted((folder / "opensearch").glob("bulk-*.ndjson")):
        text = file.read_bytes().decode()
        assert text.endswith("\n")
        lines = [json.loads(line) for line in text[:-1].split("\n")]
        for action, document in zip(lines[::2], lines[1::2], strict=True):
            assert action == {"index": {"_id": document["item_id"]}}
            found[document["item_id"]] = document["vector"]
    return found


READERS = {
    "parquet": read_parquet,
    "qdrant": read_qdrant,
    "milvus": read_milvus,
    "opensearch": read_opensearch,
}


@pytest.mark.parametrize("spec", SPECS)
def test_the_best_by_a_plain_product_are_those_that_recsys_recommends(
    make_bundle: MakeBundle, export: Export, spec: str
) -> None:
    bundle = make_bundle(MANY, **SPECS[spec])
    folder = export(bundle, "all", users=True)
    users = pd.read_parquet(folder / "users" / "users.parquet")
    asked = ["u0", "u17", "u59"]
    best = Lookup(bundle).recommend(asked, k=10, exact=True, exclude_seen=False).to_pandas()
    for name, read in READERS.items():
        vectors = read(folder)
        ids, matrix = list(vectors), np.array(list(vectors.values()), np.float64)
        for user in asked:
            queries = np.stack(users[users["user_id"] == user]["vector"].to_list())
            assert len(queries) == (3 if spec == "interests" else 1)
            scores = (matrix @ queries.T.astype(np.float64)).max(axis=1)
            order = np.argsort(-scores, kind="stable")[:10]
            mine = best[best["user_id"] == user]
            assert [ids[place] for place in order] == mine["item_id"].tolist(), name
            np.testing.assert_allclose(scores[order], mine["score"], rtol=1e-6)


@pytest.mark.parametrize("form", READERS)
def test_ids_and_vectors_come_back_bit_by_bit(
    odd_bundle: Bundle, export: Export, form: str
) -> None:
    found = READERS[form](export(odd_bundle, form))
    ids = odd_bundle.items.vocabulary.ids.to_pylist()
    assert list(found) == ids
    assert len(ids) == 9
    vectors = np.array(list(found.values()), np.float32)
    np.testing.assert_array_equal(vectors, np.asarray(odd_bundle.item_vectors))


def test_withdrawn_items_are_left_out(
    make_bundle: MakeBundle, export: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = make_bundle(MANY)
    live = np.delete(np.arange(60), [0, 7, 8, 59])
    monkeypatch.setattr("recsys.export.exported_items.candidate_rows", lambda _: live)
    folder = export(bundle, "all")
    ids = np.array(bundle.items.vocabulary.ids.to_pylist())[live].tolist()
    for read in READERS.values():
        found = read(folder)
        assert list(found) == ids
        vectors = np.array(list(found.values()), np.float32)
        np.testing.assert_array_equal(vectors, np.asarray(bundle.item_vectors)[live])
    points = json.loads((folder / "qdrant" / "points-000000.json").read_text())["points"]
    assert [point["id"] for point in points] == live.tolist()


def test_blocks_do_not_show(
    make_bundle: MakeBundle, export: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = make_bundle(MANY)
    ids = bundle.items.vocabulary.ids.to_pylist()
    for module in ("parquet", "milvus", "json_rows"):
        monkeypatch.setattr(f"recsys.export.{module}._MOST_AT_ONCE", 7)
    monkeypatch.setattr("recsys.export.milvus._NUMBERS_OF_FILE", 14 * 8)
    folder = export(bundle, "all")
    for read in READERS.values():
        assert list(read(folder)) == ids
    groups = pq.ParquetFile(folder / "parquet" / "items.parquet").metadata
    assert groups.num_row_groups == 9  # of 7 items, the last of 4
    assert len(list((folder / "milvus").glob("items-*.parquet"))) == 5
