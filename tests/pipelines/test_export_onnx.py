"""The export of the towers, fed by what `tower_inputs.json` says alone, against lookups."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from pipelines.export import export
from recsys import load_bundle
from recsys.config import ExportConfig, compose_config

Raw = dict[str, list[Any]]


class Tower:
    """A tower in onnxruntime, and how it is fed, read from the files."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.guide = folder, json.loads((folder / "tower_inputs.json").read_text())
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        self.inputs = self.guide[name]["inputs"]
        self.session = onnxruntime.InferenceSession(folder / self.guide[name]["file"], options)

    def rows(self, entry: dict[str, Any], ids: list[str]) -> list[int]:
        """Look ids up in the Parquet file that an input names; -1 for others."""
        how = entry["encoding"]
        table = pq.read_table(self.folder / how["file"]).to_pydict()
        known = dict(zip(table[how["id"]], table["row"], strict=True))
        return [known.get(an_id, -1) for an_id in ids]

    def embed(self, raw: Raw, **others: NDArray[Any]) -> NDArray[np.float32]:
        """Embed rows of raw values by column; `others` are inputs as they are fed."""
        fed = dict(others)
        for entry in self.inputs:
            if entry["name"] not in fed:
                values = raw[entry["encoding"]["column"]]
                codes = [encode(entry["encoding"], value) for value in values]
                fed[entry["name"]] = np.array(codes, entry["dtype"])
        (vectors,) = self.session.run(["vectors"], fed)
        assert isinstance(vectors, np.ndarray)
        return vectors


def encode(how: dict[str, Any], value: Any) -> Any:
    """Encode one value as the guide says; lists of at most four values."""
    match how["kind"]:
        case "categorical":
            return how["values"].index(value) + 1 if value in how["values"] else 0
        case "numeric":
            return float("nan") if value is None else (value - how["mean"]) / how["scale"]
    assert how["kind"] == "multi"
    values = [] if value is None else value.split(how["separator"]) if "separator" in how else value
    codes = {how["values"].index(one) + 1 if one in how["values"] else 0 for one in values}
    return [*codes, *[-1] * (4 - len(codes))]


def raw_values(inputs: list[dict[str, Any]], num_rows: int) -> Raw:
    """Make values of each feature: known ones, others that training never saw, and missing ones."""
    rng, raw = np.random.default_rng(0), {}
    for entry in inputs:
        how = entry.get("encoding", {})
        if "column" not in how:
            continue
        kind, known = how["kind"], [*how.get("values", []), "never seen"]
        made: list[Any] = []
        for _ in range(num_rows):
            if kind == "numeric":
                made.append(how["mean"] + float(rng.normal()) * how["scale"])
            elif kind == "categorical":
                made.append(str(rng.choice(known)))
            else:
                chosen = [str(name) for name in rng.choice(known, rng.integers(1, 4))]
                made.append(how["separator"].join(chosen) if "separator" in how else chosen)
        raw[how["column"]] = [None if n % 5 == 4 else value for n, value in enumerate(made)]
    return raw


def near(got: NDArray[np.float32], wanted: pa.Table) -> bool:
    """Tell whether no number differs by more than 1e-5 of the largest of its vector."""
    vectors = np.stack(wanted["vector"].to_numpy())
    return bool((np.abs(got - vectors) <= 1e-5 * np.abs(vectors).max(axis=1, keepdims=True)).all())


@pytest.fixture(scope="module")
def exported(trained: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Export the towers once."""
    given = {"bundle": str(trained.bundle), "threads": 1, "form": "onnx"}
    config = compose_config("export", ExportConfig, given)
    return export(config, tmp_path_factory.mktemp("onnx")) / "onnx"


def test_users_get_the_vectors_and_the_items_that_a_lookup_gives(
    trained: Any, exported: Path
) -> None:
    bundle, tower = load_bundle(trained.bundle), Tower(exported, "user_tower")
    history = next(entry for entry in tower.inputs if entry["name"] == "history")
    items = pq.read_table(exported / "items.parquet")["item_id"].to_pylist()
    users = [f"new user {n}" for n in range(12)]
    rng = np.random.default_rng(1)
    lists = {who: list(rng.choice(items, n * n)) for n, who in enumerate(users)}  # none to 121
    raw = raw_values(tower.inputs, len(users))
    width = max(map(len, lists.values()))
    rows = np.full((len(users), width), -1)
    for n, who in enumerate(users):
        rows[n, : len(lists[who])] = tower.rows(history, lists[who][::-1])  # the newest first
    vectors = tower.embed(raw, history=rows)
    features = pa.table({"user_id": users, **raw})
    assert near(vectors, bundle.embed_users(users, histories=lists, features=features))
    best = bundle.recommend(
        users, k=10, exact=True, exclude_seen=False, histories=lists, features=features
    ).to_pandas()
    every = np.stack(bundle.embed_items()["vector"].to_numpy())
    ids = bundle.embed_items()["item_id"].to_numpy()
    asked = best[~best["fallback"]].groupby("user_id")["item_id"].agg(list)
    assert len(asked) >= 11
    for who, wanted in asked.items():
        scores = every @ vectors[users.index(str(who))]
        assert ids[np.argsort(-scores, kind="stable")[:10]].tolist() == wanted


def test_items_known_and_new_get_the_vectors_of_a_lookup(trained: Any, exported: Path) -> None:
    bundle, tower = load_bundle(trained.bundle), Tower(exported, "item_tower")
    entry = next(entry for entry in tower.inputs if entry["name"] == "item_row")
    ids = [*pq.read_table(exported / "items.parquet")["item_id"].to_pylist()[:20], "new", "newer"]
    raw = raw_values(tower.inputs, len(ids))
    assert len(raw) >= 2
    rows = np.array(tower.rows(entry, ids))
    assert (rows[-2:] == -1).all()
    wanted = bundle.embed_items(pa.table({"item_id": ids, **raw}))
    assert near(tower.embed(raw, item_row=rows), wanted)
